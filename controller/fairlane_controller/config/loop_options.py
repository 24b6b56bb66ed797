# SPDX-License-Identifier: Apache-2.0
"""The file's `[loop]` as options of the agents, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from fairlane_controller.config.model import LoopConfig
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop.agent import AgentOptions
from fairlane_controller.programs.gfr.activity import ActivityOptions
from fairlane_controller.programs.qthresh.flow_weights import WeightRules


def agent_options(config: LoopConfig, base: AgentOptions) -> AgentOptions:
    """Qthresh: `base` with what the file says."""
    decide = replace(
        base.decide,
        samples=config.samples,
        margin_packets=config.margin_packets,
        margin_ratio=config.margin_ratio,
        agree_ratio=config.agree_ratio,
        min_write_interval_s=config.min_write_interval,
        max_age_s=config.max_age,
        max_t_res_age_s=config.max_t_res_age,
    )
    return replace(
        base,
        decide=decide,
        evaluate_period_s=config.evaluate_period,
        shares=replace(base.shares, period_s=config.tune_period),
        flow_idle_timeout_s=config.flow_idle,
        flow_weight=flow_weights(config) if config.flow_weights else base.flow_weight,
    )


def loop_of_agent(options: AgentOptions) -> LoopConfig:
    """The inverse of `agent_options`, but for weights of flows."""
    decide = options.decide
    return LoopConfig().model_copy(
        update={
            "samples": decide.samples,
            "margin_packets": decide.margin_packets,
            "margin_ratio": decide.margin_ratio,
            "agree_ratio": decide.agree_ratio,
            "min_write_interval": decide.min_write_interval_s,
            "max_age": decide.max_age_s,
            "max_t_res_age": decide.max_t_res_age_s,
            "evaluate_period": options.evaluate_period_s,
            "tune_period": options.shares.period_s,
            "flow_idle": options.flow_idle_timeout_s,
        }
    )


def loop_of_activity(options: ActivityOptions) -> LoopConfig:
    """The inverse of `activity_options`."""
    return LoopConfig().model_copy(update={"activity_period": options.period_s, "active_time": options.active_s})


def flow_weights(config: LoopConfig) -> WeightRules | None:
    """The weights of new flows; None without rules."""
    rules = [rule.model_dump(exclude_none=True) for rule in config.flow_weights]
    return WeightRules.parse(rules) if rules else None


def activity_options(config: LoopConfig, base: ActivityOptions) -> ActivityOptions:
    """GFR: `base` with what the file says."""
    return replace(base, period_s=config.activity_period, active_s=config.active_time)


def parse_loop(data: dict[str, Any] | None) -> LoopConfig:
    """Of plain data, as the control socket has it; BAD_INPUT when it is none."""
    try:
        return LoopConfig.model_validate(data or {})
    except ValidationError as ex:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"options of the loop: {ex.errors()[0]['msg']}") from None
