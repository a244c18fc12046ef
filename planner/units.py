"""Units of the whole package, and how numbers are written for people.

Inside, everything is SI: seconds, bytes, tokens, USD. 1 GiB = 2**30 bytes (memory),
1 GB = 10**9 bytes (bandwidth, marketing). Only this module turns numbers into text.
"""

from __future__ import annotations

import math

GIB = 2**30
MIB = 2**20
KIB = 2**10
MS = 1e-3
HOURS_PER_MONTH = 730.0
DAYS_PER_MONTH = HOURS_PER_MONTH / 24
SECONDS_PER_HOUR = 3600.0
SECONDS_PER_DAY = 86400.0
#: an uncertainty that is so small a share of its figure is what rounding leaves
NOTHING = 1e-9


def format_number(value: float, digits: int = 3) -> str:
    """Write a number with `digits` significant digits and thousands separators."""
    if value is None or math.isnan(value):
        return "—"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    decimals = max(0, digits - 1 - magnitude)
    rounded = round(value, digits - 1 - magnitude)
    text = f"{rounded:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_interval(value: float, half_width: float) -> str:
    """Write a number with its uncertainty, where that is known: "22.3 ± 0.45"."""
    if not math.isfinite(half_width) or half_width <= NOTHING * abs(value):
        return format_number(value)
    return f"{format_number(value)} ± {format_number(half_width, 2)}"


def counted(number: float, thing: str) -> str:
    """Write a number of things: "1 user", "1,200 users", "2.5 sequences", "55 sequences" for 54.86."""
    text = f"{number:,}" if isinstance(number, int) else format_number(number, 2 if 10 <= number < 100 else 3)
    return f"{text} {thing}{'' if text == '1' else 's'}"


def format_duration(seconds: float) -> str:
    """Write a duration in the unit a person would use: µs, ms, s, min or h."""
    if seconds is None or math.isnan(seconds):
        return "—"
    if math.isinf(seconds):
        return "∞"
    if seconds == 0:
        return "0 s"
    for limit, scale, unit in ((1e-3, 1e6, "µs"), (0.9995, 1e3, "ms"), (120, 1, "s"), (7200, 1 / 60, "min")):
        if abs(seconds) < limit:
            return f"{format_number(seconds * scale)} {unit}"
    return f"{format_number(seconds / 3600)} h"


def format_usd(usd: float) -> str:
    """Write an amount of money: cents below 10 USD, whole dollars from 1,000 USD."""
    if usd is None or math.isnan(usd):
        return "—"
    if math.isinf(usd):
        return "∞ USD"
    if abs(usd) >= 1000:
        return f"{usd:,.0f} USD"
    if abs(usd) >= 0.095:
        return f"{usd:,.2f} USD"
    return f"{format_number(usd, 2)} USD"


def format_percent(fraction: float) -> str:
    """Write a fraction (0 to 1) as a percentage; a share above zero never reads 0 %, nor one below all 100 %."""
    if fraction is None or math.isnan(fraction):
        return "—"
    percent = 100 * fraction
    if 0 < abs(percent) < 0.05:
        return f"{percent:.2f} %" if abs(percent) >= 0.005 else "under 0.01 %"
    if 99.5 <= percent < 100:
        return f"{percent:.1f} %" if percent < 99.95 else f"{percent:.2f} %" if percent < 99.995 else "over 99.99 %"
    return f"{percent:,.0f} %" if abs(percent) >= 10 or percent == 0 else f"{percent:.1f} %"
