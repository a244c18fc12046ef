"""The API server in front of the engine: it reads requests and sends tokens, one at a time, first come first served.

The engine is another process and never waits for it. A request reaches the scheduler's inbox once it has been
read; the client sees a token once it has been sent. Work is taken up in the order of time; a request sent at the
very moment at which a step ends is read after the tokens of that step.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

import numpy as np

from planner.simulation.kernel.compiling import compiled
from planner.simulation.state import NO_SLOT


@compiled
def next_sending_s(jobs, rules, st, feed):
    """When a client sends the next request that the server has not read; infinity when there is none."""
    if st.read >= st.fed:
        return np.inf
    if rules.users:
        return jobs[st.ready_from].ready if st.ready else np.inf
    return jobs[feed[st.read]].arrival


@compiled
def reading_s(jobs, rules, job):
    """Work of the server before a request reaches the scheduler: its own, and tokenising the prompt."""
    return rules.server_request_s + rules.server_prompt_s * jobs[job].prompt


@compiled
def next_arrival_s(jobs, rules, st, feed):
    """When the next request will have been read if no token is sent first; infinity when there is none."""
    if st.next < st.read:
        return jobs[feed[st.next]].waits_since
    if st.read >= st.fed:
        return np.inf
    return max(st.server_free, st.sending) + reading_s(jobs, rules, feed[st.read])


@compiled
def read_next(jobs, rules, st, feed):
    """Read the next request that a client has sent."""
    job = feed[st.read]
    st.read += 1
    if rules.users:
        jobs[job].arrival = st.sending
        st.ready_from = (st.ready_from + 1) % rules.users
        st.ready -= 1
    st.server_free = max(st.server_free, st.sending) + reading_s(jobs, rules, job)
    jobs[job].waits_since = st.server_free
    st.sending = next_sending_s(jobs, rules, st, feed)


@compiled
def tokens_beyond_the_end(slots, calendar, st, gain):
    """Tokens made beyond the end of their answers, when every sequence has just made `gain`."""
    count, mask = 0, len(calendar) // 2 - 1
    for key in range(st.token_clock - gain + 1, st.token_clock):
        slot = calendar[key & mask].due
        while slot != NO_SLOT:
            count += st.token_clock - key
            slot = slots[slot].due_after
    return count


@compiled
def send_tokens(slots, calendar, rules, st, gain, prompts):
    """Send the tokens of a step that ends now: `gain` of each decoding sequence, one of each completed prompt.

    Clients see all of them when the last one is sent: engines hand over a step's tokens in the order of admission,
    so the first token of a new sequence goes last.
    """
    count = gain * st.decoding + prompts
    if gain > 1:
        count -= tokens_beyond_the_end(slots, calendar, st, gain)
    st.server_free = max(st.server_free, st.clock) + count * rules.server_token_s


@compiled
def ask_again(jobs, rules, st):
    """Closed loop: once the user has the answer, or knows that there will be none, it thinks and asks again."""
    if rules.users:
        again = max(st.server_free, st.clock) + rules.think_s
        jobs[(st.ready_from + st.ready) % rules.users].ready = again
        st.ready += 1
        if st.read < st.fed:
            st.sending = min(st.sending, again)
