"""The Streamlit dashboard: shell, inputs, link state and pages. The only part that imports streamlit.

In: a link. Out: pages that all show the same plan.

shell         the frame of every page; urlstate: the scenario in the address bar
inputs        the form; form_fields: what it shows and when, form_summaries: its groups in a line each,
              config_editor: a model of one's own
results       the plan, cached; tasks: what a page may compute; searches: searches that run behind the page
headlines     sentences of the pages; tiles: verdict, badges and tiles; plan_tables, time_tables: tables;
              derivations: the memory page's formulas
words         labels, choices and values of the form in words
widgets       charts, tables and formulas as every page draws them
pages         one file a page; alternatives, commands, comparison, lab, own and others are sections of them
"""
