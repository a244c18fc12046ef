"""What the inputs amount to."""

from planner.scenario.scenario import Scenario


def test_slots_that_llama_server_is_told_have_contexts_of_their_own() -> None:
    shared = Scenario(engine="llama-server").engine_settings
    told = Scenario(engine="llama-server", max_num_seqs=8).engine_settings
    assert (shared.kv_unified, shared.max_num_seqs) == (True, 4)
    assert (told.kv_unified, told.max_num_seqs, told.kv_reservation) == (False, 8, "reserve_max")
