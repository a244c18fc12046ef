"""The texts of the Method page and of the batching lab."""

# ruff: noqa: E501 - markdown tables do not wrap

WHAT_IT_DOES_NOT_KNOW = """
**What the tool does not know.** Quality of answers after quantisation. Networks between nodes. Power and cooling limits,
noisy neighbours, cold starts of new replicas. Acceptance rates of speculation for your text (you enter one). Routing skew
between experts. Prices after the date of its tables. Traffic that you did not describe: a plan is as good as its
lengths and its peak. Every figure is an estimate; the Accuracy page says how far such estimates were from published
measurements, and where there is none, it says so.
"""

VOCABULARY = """
| word | meaning |
|---|---|
| TTFT | time to first token: arrival → first output token, queueing included |
| TPOT | time per output token: (E2E − TTFT) ÷ (output tokens − 1), one figure per request |
| ITL | inter-token latency: each gap between two tokens, pooled over all tokens |
| E2E | arrival → last token |
| goodput | requests per second that meet every target |
| p50, p95, p99 | linear interpolation over requests completed after warm-up; rejected and unfinished ones count as misses |
| replica | one copy of the model: one engine on tensor × pipeline parallel GPUs |
| KV pool | memory for keys and values of all running sequences, in bytes, blocks and tokens |
| concurrency | sequences running at once |
| reserved | KV memory set aside for a request; used = the part that holds tokens |
| busy at peak | peak rate as a share of the throughput with a queue that never empties |
| preemption | a sequence loses its blocks and is recomputed later |
| GiB, GB | 2³⁰ and 10⁹ bytes: memory in GiB, bandwidth in GB/s |
"""

FORMULAS = """
| figure | formula |
|---|---|
| weights | Σ over tensor groups: parameters × bits ÷ 8 ÷ share per GPU |
| KV bytes per token | Σ over layers: 2 × KV heads per GPU × head size × bytes; windows and states as the engine lays them out |
| KV pool | utilisation × GPU memory − weights − activations − runtime (− CUDA graphs, by version) |
| concurrency | blocks ÷ blocks per sequence |
| step time | linear layers (weights read or arithmetic, whichever is longer) + attention (bytes of KV cache ÷ bandwidth, pairs ÷ arithmetic) + collectives + launch and host cost |
| latency | discrete-event simulation of the engine's step loop on the drawn requests |
| throughput | requests finished per second while the queue never empties, first and last tenth left out |
| replicas | ⌈peak rate ÷ highest rate at which the targets hold⌉ + spare, confirmed by simulating the fleet |
| USD per million tokens | GPUs × price × hours ÷ (requests finished in these hours × tokens per request) × 10⁶ |
| break-even | bill ÷ API price of one request |
"""

SOURCES = """
- Models: the published config.json of each, exact parameter totals from the hub where known.
- GPUs: vendor data sheets and driver-reported memory; prices from public price lists, with date.
- Engine arithmetic: source and start-up logs of vLLM, SGLang, TensorRT-LLM, TGI, llama.cpp, by version.
- Step times: parameters fitted to published kernel measurements; residuals are on the Accuracy page.
- Paged KV cache: Kwon et al., SOSP 2023. Iteration-level scheduling: Yu et al. (Orca), OSDI 2022. Chunked prefill:
  Agrawal et al. (Sarathi-Serve), OSDI 2024.
- Lengths: Azure LLM inference traces 2023, Mooncake traces, arXiv summarisation.
- Hosted prices: the genai-prices package.
"""

POLICIES = """
- **One at a time** serves a single request until its last token: every step reads all weights for one token.
- **Static batches** start together and end with their longest answer; finished requests hold their slots.
- **Continuous, reserve-max KV** (Orca) fills free slots at every step, but sets aside the maximum context for each request.
- **Continuous, paged KV** (vLLM) gives out cache block by block as sequences grow, and evicts the last when it runs out.
"""
