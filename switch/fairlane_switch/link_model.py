# SPDX-License-Identifier: Apache-2.0
"""The model of a link. Made by setup/link_model.py of link.schema.json: do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from fairlane_switch.link_series import Varying


class LinkOptions(BaseModel):
    """Settings of one direction of a link. The default is a perfect line."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    delay_us: Annotated[Annotated[int | float, Field(ge=0, le=60000000)], Varying("delay_us")] = 0
    """Propagation delay."""
    jitter_us: Annotated[Annotated[int | float, Field(ge=0, le=60000000)], Varying("jitter_us")] = 0
    """Half width (uniform) or standard deviation (normal) of the delay; not above the delay."""
    jitter_distribution: Literal["uniform", "normal"] = "uniform"
    """How the delay deviates from its mean."""
    reorder: bool = False
    """Lets a frame with a small delay overtake; otherwise it waits for the one before it."""
    rate_bps: Annotated[Annotated[int, Field(ge=0, le=400000000000)], Varying("rate_bps")] = 0
    """Rate of the line in bit/s of Ethernet frame (no preamble, no FCS); 0 is unlimited."""
    loss: Annotated[Annotated[int | float, Field(ge=0, le=1)], Varying("loss")] = 0.0
    """Probability that a frame is lost."""
    ber: Annotated[int | float, Field(ge=0, le=1)] = 0.0
    """Probability that a bit of those that `errors_in` names is flipped."""
    errors_in: Literal["frame", "payload"] = "frame"
    """Where `ber` and `ge_ber` flip bits: behind the Ethernet header, or behind the TCP or UDP header alone, so that pure ACKs are never hit."""
    spare_retransmissions: bool = False
    """Data that a TCP flow sends again on this link is not hit."""
    queue_packets: Annotated[int, Field(ge=1, le=1000000)] = 1000
    """Frames that may wait for the line, the one on it not counted. With neither rate nor trace they wait only while a spike blocks the line."""
    ge_enter: Annotated[int | float, Field(ge=0, le=1)] = 0.0
    """Gilbert-Elliott: probability per frame of entering the bad state; 0: there is none. `loss` and `ber` hold in the good one."""
    ge_leave: Annotated[int | float, Field(ge=1e-06, le=1)] = 1.0
    """Probability per frame of leaving it: bursts last 1 / `ge_leave` frames on average."""
    ge_loss: Annotated[int | float, Field(ge=0, le=1)] = 1.0
    """Probability that a frame is lost in the bad state."""
    ge_ber: Annotated[int | float, Field(ge=0, le=1)] = 0.0
    """Probability that a bit is flipped in it."""
    ge_good_us: Annotated[int | float, Field(ge=0, le=60000000)] = 0
    """Instead of `ge_enter`, with `ge_bad`: the mean time in the good state, frames or none; at least 1 ms."""
    ge_bad_us: Annotated[int | float, Field(ge=0, le=60000000)] = 0
    """The mean time in the bad state: a burst meets all frames that come to the link meanwhile."""
    duplicate: Annotated[int | float, Field(ge=0, le=1)] = 0.0
    """Probability that a frame comes to the link twice; all else happens to the copy, right behind it, by itself."""
    dama_frame_us: Annotated[int | float, Field(ge=0, le=60000000)] = 0
    """DAMA: the line sends what is granted for each frame of so long, at most `rate_bps`; at least 1 ms, 0: it sends by itself."""
    dama_delay_us: Annotated[int | float, Field(ge=0, le=60000000)] = 0
    """From a request, at the start of a frame and by volume (VBDC), to its grant."""
    dama_cra_bps: Annotated[int, Field(ge=0, le=400000000000)] = 0
    """Granted without a request (CRA)."""


class LinkSettings(BaseModel):
    """Some settings of a link, times in ms; what is None stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    delay_ms: Annotated[Annotated[float, Field(ge=0, le=60000)], Varying("delay_ms")] | None = None
    """Propagation delay."""
    jitter_ms: Annotated[Annotated[float, Field(ge=0, le=60000)], Varying("jitter_ms")] | None = None
    """Half width (uniform) or standard deviation (normal) of the delay; not above the delay."""
    jitter_distribution: Literal["uniform", "normal"] | None = None
    """How the delay deviates from its mean."""
    reorder: bool | None = None
    """Lets a frame with a small delay overtake; otherwise it waits for the one before it."""
    rate_bps: Annotated[Annotated[int, Field(ge=0, le=400000000000)], Varying("rate_bps")] | None = None
    """Rate of the line in bit/s of Ethernet frame (no preamble, no FCS); 0 is unlimited."""
    loss: Annotated[Annotated[float, Field(ge=0, le=1)], Varying("loss")] | None = None
    """Probability that a frame is lost."""
    ber: Annotated[float, Field(ge=0, le=1)] | None = None
    """Probability that a bit of those that `errors_in` names is flipped."""
    errors_in: Literal["frame", "payload"] | None = None
    """Where `ber` and `ge_ber` flip bits: behind the Ethernet header, or behind the TCP or UDP header alone, so that pure ACKs are never hit."""
    spare_retransmissions: bool | None = None
    """Data that a TCP flow sends again on this link is not hit."""
    queue_packets: Annotated[int, Field(ge=1, le=1000000)] | None = None
    """Frames that may wait for the line, the one on it not counted. With neither rate nor trace they wait only while a spike blocks the line."""
    ge_enter: Annotated[float, Field(ge=0, le=1)] | None = None
    """Gilbert-Elliott: probability per frame of entering the bad state; 0: there is none. `loss` and `ber` hold in the good one."""
    ge_leave: Annotated[float, Field(ge=1e-06, le=1)] | None = None
    """Probability per frame of leaving it: bursts last 1 / `ge_leave` frames on average."""
    ge_loss: Annotated[float, Field(ge=0, le=1)] | None = None
    """Probability that a frame is lost in the bad state."""
    ge_ber: Annotated[float, Field(ge=0, le=1)] | None = None
    """Probability that a bit is flipped in it."""
    ge_good_ms: Annotated[float, Field(ge=0, le=60000)] | None = None
    """Instead of `ge_enter`, with `ge_bad`: the mean time in the good state, frames or none; at least 1 ms."""
    ge_bad_ms: Annotated[float, Field(ge=0, le=60000)] | None = None
    """The mean time in the bad state: a burst meets all frames that come to the link meanwhile."""
    duplicate: Annotated[float, Field(ge=0, le=1)] | None = None
    """Probability that a frame comes to the link twice; all else happens to the copy, right behind it, by itself."""
    dama_frame_ms: Annotated[float, Field(ge=0, le=60000)] | None = None
    """DAMA: the line sends what is granted for each frame of so long, at most `rate_bps`; at least 1 ms, 0: it sends by itself."""
    dama_delay_ms: Annotated[float, Field(ge=0, le=60000)] | None = None
    """From a request, at the start of a frame and by volume (VBDC), to its grant."""
    dama_cra_bps: Annotated[int, Field(ge=0, le=400000000000)] | None = None
    """Granted without a request (CRA)."""
