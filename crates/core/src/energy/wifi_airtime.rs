//! Wi-Fi by time on the air: so much while sending, receiving and waiting, and a toll for each
//! frame.
//!
//! The form of Garcia-Saavedra et al. (CoNEXT 2012) and Serrano et al. (ToN 2015): power = idle +
//! shares of airtime sending and receiving + energy of each frame on its way through the host
//! (the "cross-factor"). A frame that collides takes its airtime again and no toll: it waits in
//! the card.

use serde::{Deserialize, Serialize};

use super::radio::{Radio, Timers};
use super::{Energy, Interval, PowerModel};

/// Payload of a frame where the medium has not counted frames, bytes.
const FRAME_BYTES: f64 = 1500.0;

/// Parameters of the airtime model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WifiAirtimeParameters {
    /// Power while awake with nothing on the air for this station, mW.
    pub awake_mw: f64,
    /// Power while receiving, mW.
    pub receive_mw: f64,
    /// Power while sending, mW.
    pub send_mw: f64,
    /// Energy of a frame received, on its way through the host, microjoules.
    #[serde(default)]
    pub frame_received_uj: f64,
    /// Energy of a frame sent, on its way through the host, microjoules.
    #[serde(default)]
    pub frame_sent_uj: f64,
    /// Time awake after the last data, ms.
    #[serde(default)]
    pub tail_ms: f64,
    /// Power after that (power save), mW.
    pub idle_mw: f64,
    /// Payload rate of the channel when this station alone uses all of its airtime, Mbit/s: airtime
    /// is bits over this where the medium has not counted it.
    pub channel_mbps: f64,
}

/// Airtime model with its state.
#[derive(Clone, Copy, Debug)]
pub(super) struct WifiAirtime {
    p: WifiAirtimeParameters,
    timers: Timers,
    radio: Radio,
}

/// Use of the air in one interval, seconds and frames.
struct Use {
    sending_s: f64,
    receiving_s: f64,
    frames_sent: f64,
    frames_received: f64,
}

impl WifiAirtime {
    pub(super) fn new(p: WifiAirtimeParameters) -> Self {
        Self {
            p,
            timers: Timers::of_ms(0.0, p.tail_ms),
            radio: Radio::default(),
        }
    }

    /// Use of the air, counted or else by bits; never more than there is time.
    fn usage(&self, interval: &Interval) -> Use {
        let mut u = match interval.airtime {
            Some(a) => Use {
                sending_s: (a.sending + a.collided).as_secs_f64(),
                receiving_s: a.receiving.as_secs_f64(),
                frames_sent: a.frames_sent as f64,
                frames_received: a.frames_received as f64,
            },
            None => {
                let (down, up) = interval.mbit();
                Use {
                    sending_s: up / self.p.channel_mbps,
                    receiving_s: down / self.p.channel_mbps,
                    frames_sent: interval.up_bytes / FRAME_BYTES,
                    frames_received: interval.down_bytes / FRAME_BYTES,
                }
            }
        };
        let (all, length) = (u.sending_s + u.receiving_s, interval.length.as_secs_f64());
        if all > length {
            u.sending_s *= length / all;
            u.receiving_s *= length / all;
        }
        u
    }
}

impl PowerModel for WifiAirtime {
    fn name(&self) -> &'static str {
        "wifi-airtime"
    }

    fn advance(&mut self, interval: &Interval) -> Energy {
        let p = &self.p;
        let spent = self.radio.pass(interval, &self.timers);
        let u = self.usage(interval);
        let waiting_s = (spent.active_s - u.sending_s - u.receiving_s).max(0.0);
        let tolls = p.frame_sent_uj * u.frames_sent + p.frame_received_uj * u.frames_received;
        let on_air = p.send_mw * u.sending_s + p.receive_mw * u.receiving_s;
        Energy {
            active_joules: (on_air + p.awake_mw * waiting_s) / 1e3 + tolls / 1e6,
            promotion_joules: 0.0,
            tail_joules: p.awake_mw * spent.in_tail_s() / 1e3,
            idle_joules: p.idle_mw * spent.idle_s / 1e3,
        }
    }
}
