// SPDX-License-Identifier: Apache-2.0
//! Applications as state machines: at each instant of theirs one step, and when the next one comes. They know no network.

use crate::chance::Chance;
use crate::config::{App, Distribution, Video};
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

    /// True when it is greedy and silent in turn.
    pub fn is_on_off(&self) -> bool {
        matches!(self.app, App::OnOff(_))
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

/// The player of an adaptive video: how much of it waits to be played, and at which rate its next segment is asked for.
///
/// BBA-0 of Huang, Johari, McKeown, Trunnell, Watson: A Buffer-Based Approach to Rate Adaptation, SIGCOMM 2014, Algorithm 1.
#[derive(Clone, Debug, Default)]
struct Player {
    /// When what it has is played.
    plays_until: Nanos,
    /// Place of the last rate in the ladder.
    rate: usize,
}

impl Player {
    /// A segment is there; returns when the next one is asked for: at once, or when the buffer has room for it.
    fn take(&mut self, video: &Video, now: Nanos) -> Nanos {
        // Where nothing waited, it stood still until now.
        self.plays_until = self.plays_until.max(now).saturating_add(video.segment_ns);
        let before = video.buffer_ns.saturating_sub(video.segment_ns);
        now.max(self.plays_until.saturating_sub(before))
    }

    /// Bytes of the segment to ask for.
    fn ask(&mut self, video: &Video, now: Nanos) -> u64 {
        self.rate = next_rate(video, self.rate, self.plays_until.saturating_sub(now));
        let bits = u128::from(video.bitrates_bps[self.rate]) * u128::from(video.segment_ns);
        u64::try_from(bits / 8_000_000_000).unwrap_or(u64::MAX / 2)
    }
}

/// Algorithm 1: the place of the next rate, from the last one's and the time that waits to be played.
fn next_rate(video: &Video, last: usize, buffered: Nanos) -> usize {
    let rates = &video.bitrates_bps;
    let highest = rates.len() - 1;
    if buffered <= video.reservoir_ns {
        return 0;
    }
    if buffered >= video.reservoir_ns + video.cushion_ns {
        return highest;
    }
    // f(B) rises from R_min at the reservoir's end to R_max at the cushion's; both sides times the cushion, so that nothing is rounded.
    let f = u128::from(rates[highest] - rates[0]) * u128::from(buffered - video.reservoir_ns);
    let rate = |i: usize| u128::from(rates[i] - rates[0]) * u128::from(video.cushion_ns);
    if f >= rate(highest.min(last + 1)) {
        (0..=highest).rfind(|i| rate(*i) < f).unwrap_or(0)
    } else if f <= rate(last.saturating_sub(1)) {
        (0..=highest).find(|i| rate(*i) > f).unwrap_or(highest)
    } else {
        last
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

    const S: Nanos = 1_000_000_000;

    fn video() -> Video {
        Video {
            bitrates_bps: vec![1_000_000, 2_000_000, 3_000_000, 5_000_000],
            segment_ns: 4 * S,
            buffer_ns: 20 * S,
            reservoir_ns: 6 * S,
            cushion_ns: 8 * S,
        }
    }

    /// f(B) is 1 Mbit/s at 6 s and grows by 500 kbit/s a second to 5 Mbit/s at 14 s.
    #[test]
    fn the_rate_follows_the_buffer_and_stays_between_its_neighbours() {
        let cases = [
            // last, buffered (ms), next
            (3, 0, 0),
            (3, 6_000, 0),
            (0, 6_001, 0), // f is above R_min, but below the next rate
            (0, 7_999, 0),
            (0, 8_000, 0), // f reaches the next rate; the largest below f is the last one
            (0, 8_001, 1), // above: that one
            (0, 10_001, 2), // several steps at once
            (1, 9_000, 1),
            (2, 9_000, 2), // between the rates below and above: stays
            (2, 8_000, 2), // f is the rate below: the smallest above f
            (2, 7_999, 1),
            (3, 9_000, 2), // f is below the rate below
            (3, 7_000, 1),
            (0, 14_000, 3),
            (0, 60_000, 3),
        ];
        for (last, buffered_ms, next) in cases {
            let found = next_rate(&video(), last, buffered_ms * 1_000_000);
            assert_eq!(found, next, "last {last}, {buffered_ms} ms buffered");
        }
    }

    #[test]
    fn a_full_buffer_waits_for_room_and_an_empty_one_stands_still() {
        let video = video();
        let mut player = Player::default();
        assert_eq!(player.ask(&video, 0), 500_000); // 1 Mbit/s for 4 s
        for number in 0..3 {
            assert_eq!(player.take(&video, 3 * S + number), 3 * S + number);
        }
        // From 3 s it plays; at 3 s and a bit it has 12 s, and a fourth makes 16 s: just room for one more.
        assert_eq!(player.take(&video, 4 * S), 4 * S);
        assert_eq!(player.ask(&video, 4 * S), 2_500_000); // 15 s: all of the ladder
                                                          // A fifth makes 19 s at 4 s: room at 7 s.
        assert_eq!(player.take(&video, 4 * S), 7 * S);
        // Nothing came until 30 s, when 23 s were over: what comes then is played from then on.
        assert_eq!(player.take(&video, 30 * S), 30 * S);
        assert_eq!(player.plays_until, 34 * S);
    }
}
