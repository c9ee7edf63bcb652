//! Carrier that falls back to another while nothing comes from the proxy: where UDP is blocked,
//! connections of TCP go on.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Carrier, Connection};
use crate::wire::Target;

/// How long there may be no contact before connections go the other way: a path that fails has been
/// replaced by then, or another proxy has taken over.
const PATIENCE: Duration = Duration::from_secs(1);

/// Carrier over sessions, and over another while there is no contact with the proxy.
#[derive(Clone)]
pub struct Fallback {
    contact: watch::Receiver<bool>,
    /// Time since which there is no contact.
    away: watch::Receiver<Option<Instant>>,
    first: Arc<dyn Carrier>,
    second: Arc<dyn Carrier>,
}

impl Fallback {
    /// Makes a carrier by `first` while there is `contact` over a session, and otherwise by `second`.
    /// Returns the task that follows the contact and ends with it; it tells `told` whether connections
    /// fall back.
    pub fn new(
        contact: watch::Receiver<bool>,
        first: Arc<dyn Carrier>,
        second: Arc<dyn Carrier>,
        told: impl Fn(bool) + Send + 'static,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (tell, away) = watch::channel(Some(Instant::now()));
        let following = follow(contact.clone(), tell, told);
        let carrier = Self {
            contact,
            away,
            first,
            second,
        };
        (carrier, following)
    }

    /// Waits for contact. Never ends where none can come any more.
    async fn found(mut contact: watch::Receiver<bool>) {
        if contact.wait_for(|there| *there).await.is_err() {
            std::future::pending().await
        }
    }

    async fn connect_to(self, to: Target) -> io::Result<Box<dyn Connection>> {
        let away = self.away.borrow().map_or(Duration::ZERO, |t| t.elapsed());
        let rest = PATIENCE.saturating_sub(away);
        let mut found = std::pin::pin!(Self::found(self.contact));
        if timeout(rest, &mut found).await.is_ok() {
            return self.first.connect(&to).await;
        }
        // An outage of all accesses keeps back both: whichever is there first.
        tokio::select! {
            biased;
            () = found => self.first.connect(&to).await,
            connected = self.second.connect(&to) => connected,
        }
    }
}

async fn follow(
    mut contact: watch::Receiver<bool>,
    tell: watch::Sender<Option<Instant>>,
    told: impl Fn(bool),
) {
    loop {
        tell.send_replace(Some(Instant::now()));
        let soon = timeout(PATIENCE, contact.wait_for(|there| *there)).await;
        let is_back = match soon.ok().map(|there| there.is_ok()) {
            Some(is_back) => is_back,
            None => {
                told(true);
                let is_back = contact.wait_for(|there| *there).await.is_ok();
                told(false);
                is_back
            }
        };
        if !is_back {
            return;
        }
        tell.send_replace(None);
        if contact.wait_for(|there| !there).await.is_err() {
            return;
        }
    }
}

impl Carrier for Fallback {
    fn in_class(&self, class: u8) -> Arc<dyn Carrier> {
        Arc::new(Self {
            first: self.first.in_class(class),
            second: self.second.in_class(class),
            ..self.clone()
        })
    }

    fn connect(&self, to: &Target) -> BoxFuture<'static, io::Result<Box<dyn Connection>>> {
        self.clone().connect_to(to.clone()).boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Carrier that notes that it was asked, and connects nothing; `slow`: never even that.
    struct Noted {
        name: &'static str,
        asked: Arc<Mutex<Vec<&'static str>>>,
        slow: bool,
    }

    impl Carrier for Noted {
        fn in_class(&self, _: u8) -> Arc<dyn Carrier> {
            unreachable!("one class")
        }

        fn connect(&self, _: &Target) -> BoxFuture<'static, io::Result<Box<dyn Connection>>> {
            self.asked.lock().unwrap().push(self.name);
            match self.slow {
                true => std::future::pending().boxed(),
                false => std::future::ready(Err(io::ErrorKind::Other.into())).boxed(),
            }
        }
    }

    /// Asks for a connection at each of these times, ms, while contact comes (even) and goes (odd) at
    /// those; returns which carriers were asked, and when connections fell back.
    async fn asked(
        contact_at_ms: &[u64],
        connect_at_ms: u64,
        slow: bool,
    ) -> (Vec<&'static str>, Vec<bool>) {
        let (tell, contact) = watch::channel(false);
        let asked = Arc::new(Mutex::new(vec![]));
        let noted = |name, slow| {
            let asked = Arc::clone(&asked);
            Arc::new(Noted { name, asked, slow })
        };
        let said = Arc::new(Mutex::new(vec![]));
        let says = Arc::clone(&said);
        let told = move |falls| says.lock().unwrap().push(falls);
        let (carrier, following) = Fallback::new(
            contact,
            noted("session", false),
            noted("converter", slow),
            told,
        );
        let following = tokio::spawn(following);
        let begin = tokio::time::Instant::now();
        let ms = Duration::from_millis;
        let connecting = tokio::spawn(async move {
            tokio::time::sleep_until(begin + ms(connect_at_ms)).await;
            let to = Target::from(std::net::SocketAddr::from(([192, 0, 2, 1], 80)));
            drop(carrier.connect(&to).await);
        });
        for (i, at) in contact_at_ms.iter().enumerate() {
            tokio::time::sleep_until(begin + ms(*at)).await;
            tell.send_replace(i % 2 == 0);
        }
        timeout(ms(5000), connecting).await.unwrap().unwrap();
        drop(tell);
        following.await.unwrap();
        let (asked, said) = (asked.lock().unwrap(), said.lock().unwrap());
        (asked.clone(), said.clone())
    }

    #[tokio::test]
    async fn connections_fall_back_after_a_second_without_contact() {
        // There soon, as when a daemon begins; and there already.
        assert_eq!(asked(&[200], 0, false).await, (vec!["session"], vec![]));
        assert_eq!(asked(&[0], 100, false).await, (vec!["session"], vec![]));
        // Away for a moment.
        let moment = asked(&[0, 100, 500], 200, false).await;
        assert_eq!(moment, (vec!["session"], vec![]));
        // Never there, and there again.
        let never = asked(&[], 0, false).await;
        assert_eq!(never, (vec!["converter"], vec![true, false]));
        let long = asked(&[0, 100, 1700], 1300, false).await;
        assert_eq!(long, (vec!["converter"], vec![true, false]));
        // The other way leads nowhere, either.
        let outage = asked(&[0, 100, 1700], 1300, true).await;
        assert_eq!(outage, (vec!["converter", "session"], vec![true, false]));
    }
}
