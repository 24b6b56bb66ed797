// SPDX-License-Identifier: Apache-2.0
//! Applications as state machines: at each instant of theirs one step, and when the next one comes. They know no network.

use crate::chance::Chance;
use crate::config::{App, Distribution};
use crate::video::Player;
use crate::Nanos;

const NS_PER_S: f64 = 1e9;

/// What an application wants to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// As much as the connection takes, until told to be quiet.
    Greedy,
    /// Bytes whose time until the last is acknowledged counts.
    Transfer(u64),
}

/// When an application closes a connection that it opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    Never,
    /// With the last byte that it writes.
    Written,
    /// Once what it wrote was given to the connection and sent as far as that may.
    Sent,
}

/// What an application does at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Nothing,
    /// Opens a connection and writes.
    Open {
        work: Work,
        then_close: Close,
    },
    /// Writes on the connection it has.
    Write(Work),
    /// Writes no more for now: what is not sent yet is not sent.
    Quiet,
    /// Sends a datagram with this payload.
    Datagram(usize),
    /// Starts its program.
    Run,
}

/// An application at work.
#[derive(Clone, Debug)]
pub struct AppState {
    app: App,
    /// When it started, and steps since.
    started: Nanos,
    steps: u64,
    player: Player,
}

impl AppState {
    pub fn new(app: App, start: Nanos) -> AppState {
        AppState {
            app,
            started: start,
            steps: 0,
            player: Player::default(),
        }
    }

    pub fn is_udp(&self) -> bool {
        matches!(self.app, App::CbrUdp(_))
    }

    /// True when each of many transfers has a connection of its own.
    pub fn is_web(&self) -> bool {
        match &self.app {
            App::Web(_) => true,
            App::Bytes(app) => app.times > 1,
            _ => false,
        }
    }

    /// True when the acknowledgment of each of its messages counts.
    pub fn has_messages(&self) -> bool {
        matches!(self.app, App::Interactive(_) | App::Video(_))
    }

    /// True when what is not finished at the end is reported.
    pub fn is_file(&self) -> bool {
        matches!(self.app, App::Bytes(_))
    }

    /// The last byte of a transfer is acknowledged; returns the instant of the step that it leads to, if there is one.
    pub fn on_finished(&mut self, now: Nanos) -> Option<Nanos> {
        match &self.app {
            App::Video(app) => Some(self.player.take(app, now)),
            _ => None,
        }
    }

    /// Does the step that is due at `now`; returns it and the instant of the next one.
    pub fn step(&mut self, now: Nanos, chance: &mut Chance) -> (Step, Option<Nanos>) {
        let step = self.steps;
        self.steps += 1;
        let first = step == 0;
        match &self.app {
            App::Greedy => {
                let work = Work::Greedy;
                let then_close = Close::Never;
                (Step::Open { work, then_close }, None)
            }
            App::Bytes(app) => {
                let work = Work::Transfer(app.bytes);
                let then_close = match app.nodelay {
                    true => Close::Sent,
                    false => Close::Written,
                };
                let more = self.steps < app.times;
                let next = more.then(|| now.saturating_add(app.interval_ns));
                (Step::Open { work, then_close }, next)
            }
            App::Command(_) => (Step::Run, None),
            App::OnOff(app) => {
                let on = step.is_multiple_of(2);
                let mean = if on { app.on_mean_ns } else { app.off_mean_ns };
                let length = chance.draw(app.distribution, mean as f64, app.shape);
                let work = Work::Greedy;
                let then_close = Close::Never;
                let step = match on {
                    true if first => Step::Open { work, then_close },
                    true => Step::Write(work),
                    false => Step::Quiet,
                };
                (step, Some(now.saturating_add((length as Nanos).max(1))))
            }
            App::Web(app) => {
                // Poisson: nothing arrives at the start itself.
                let step = match first {
                    true => Step::Nothing,
                    false => {
                        let size = chance.draw(app.distribution, app.mean_bytes as f64, app.shape);
                        let most = if app.max_bytes == 0 {
                            u64::MAX / 2
                        } else {
                            app.max_bytes
                        };
                        Step::Open {
                            work: Work::Transfer((size as u64).clamp(1, most)),
                            then_close: Close::Written,
                        }
                    }
                };
                let mean = NS_PER_S / app.arrivals_per_s;
                let gap = chance.draw(Distribution::Exponential, mean, 0.0);
                (step, Some(now.saturating_add(gap as Nanos)))
            }
            App::Interactive(app) => {
                let work = Work::Transfer(app.bytes);
                let then_close = Close::Never;
                let step = match first {
                    true => Step::Open { work, then_close },
                    false => Step::Write(work),
                };
                (step, Some(now.saturating_add(app.interval_ns)))
            }
            App::Video(app) => {
                let work = Work::Transfer(self.player.ask(app, now));
                let then_close = Close::Never;
                let step = match first {
                    true => Step::Open { work, then_close },
                    false => Step::Write(work),
                };
                (step, None)
            }
            App::CbrUdp(app) => {
                // From the start, so that no rounding adds up.
                let bits = u128::from(self.steps) * u128::from(app.payload_bytes) * 8;
                let offset = bits * 1_000_000_000 / u128::from(app.rate_bps);
                let next = u128::from(self.started) + offset;
                let step = Step::Datagram(app.payload_bytes as usize);
                (step, Nanos::try_from(next).ok())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Bytes, CbrUdp, Interactive, OnOff, Web};

    fn run(app: App, start: Nanos, until: Nanos) -> Vec<(Nanos, Step)> {
        let (mut chance, _) = Chance::of_flow(1, "x");
        let mut state = AppState::new(app, start);
        let mut steps = Vec::new();
        let mut next = Some(start);
        while let Some(now) = next.filter(|now| *now < until) {
            let (step, then) = state.step(now, &mut chance);
            steps.push((now, step));
            next = then;
        }
        steps
    }

    #[test]
    fn a_constant_rate_is_exact_over_any_time() {
        let app = App::CbrUdp(CbrUdp {
            rate_bps: 3_000_000,
            payload_bytes: 1_000,
        });
        let steps = run(app, 7, 1_000_000_007);
        assert_eq!(steps.len(), 375); // 3 Mbit / 8000 bit
        assert_eq!(steps[1].0, 7 + 2_666_666);
        assert_eq!(steps[3].0, 7 + 8_000_000);
    }

    #[test]
    fn web_arrivals_are_poisson() {
        let app = App::Web(Web {
            arrivals_per_s: 100.0,
            mean_bytes: 4_000,
            distribution: Distribution::Pareto,
            shape: 1.2,
            max_bytes: 100_000,
        });
        let steps = run(app, 0, 100_000_000_000);
        assert_eq!(steps[0].1, Step::Nothing);
        assert!((9_700..10_300).contains(&steps.len()), "{}", steps.len());
        for (_, step) in &steps[1..] {
            let Step::Open {
                work: Work::Transfer(bytes),
                then_close: Close::Written,
            } = step
            else {
                panic!("{step:?}")
            };
            assert!((666..=100_000).contains(bytes), "{bytes}");
        }
        // The gaps of a Poisson process vary as much as they are long.
        let gaps: Vec<f64> = steps.windows(2).map(|w| (w[1].0 - w[0].0) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance =
            gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / gaps.len() as f64;
        assert!((variance / mean / mean - 1.0).abs() < 0.1);
    }

    #[test]
    fn on_and_off_alternate() {
        let app = App::OnOff(OnOff {
            on_mean_ns: 10,
            off_mean_ns: 30,
            distribution: Distribution::Fixed,
            shape: 1.2,
        });
        let open = Step::Open {
            work: Work::Greedy,
            then_close: Close::Never,
        };
        let expected = [
            (5, open),
            (15, Step::Quiet),
            (45, Step::Write(Work::Greedy)),
            (55, Step::Quiet),
        ];
        assert_eq!(run(app, 5, 60), expected);
    }

    #[test]
    fn files_are_asked_for_so_many_times() {
        let app = App::Bytes(Bytes {
            bytes: 100,
            times: 3,
            interval_ns: 20,
            nodelay: true,
        });
        let open = Step::Open {
            work: Work::Transfer(100),
            then_close: Close::Sent,
        };
        assert_eq!(run(app, 7, 600), [(7, open), (27, open), (47, open)]);
    }

    #[test]
    fn messages_come_at_their_interval() {
        let app = App::Interactive(Interactive {
            bytes: 100,
            interval_ns: 20,
        });
        let work = Work::Transfer(100);
        let open = Step::Open {
            work,
            then_close: Close::Never,
        };
        let expected = [(0, open), (20, Step::Write(work)), (40, Step::Write(work))];
        assert_eq!(run(app, 0, 60), expected);
    }
}
