//! The clock that deadlines are counted on.

use std::os::fd::OwnedFd;
use std::time::Duration;

use fence_core::BootInstant;
use futures_util::future::BoxFuture;
use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// A clock that keeps running while the machine is suspended, and its timer.
///
/// [`BootClock`] is the one to use. Another one serves to test what a holder does when time freezes or jumps.
pub trait Clock: Send + Sync + 'static {
    /// The present reading. It never falls; a session whose clock falls by more than a second is fenced.
    fn now(&self) -> BootInstant;

    /// Waits until the clock reads `at` or more; suspended time counts.
    fn sleep_until(&self, at: BootInstant) -> BoxFuture<'static, ()>;
}

/// `CLOCK_BOOTTIME`, with timers of the same clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> BootInstant {
        read()
    }

    fn sleep_until(&self, at: BootInstant) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if read() < at && wait_on_timer(at).await.is_err() {
                wait_in_steps(at).await;
            }
        })
    }
}

fn read() -> BootInstant {
    let reading = clock_gettime(ClockId::Boottime);
    let since_boot = Duration::new(
        reading.tv_sec.try_into().expect("boot time is not negative"),
        reading.tv_nsec.try_into().expect("nanoseconds are not negative"),
    );
    BootInstant::from_nanos(0).after(since_boot)
}

async fn wait_on_timer(at: BootInstant) -> std::io::Result<()> {
    let timer = timerfd_create(
        TimerfdClockId::Boottime,
        TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
    )?;
    let since_boot = Duration::from_nanos(at.as_nanos());
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let expiry = Timespec::try_from(since_boot).map_err(|_| Errno::INVAL)?;
    let once = Itimerspec {
        it_interval: at_once,
        it_value: expiry,
    };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &once)?;
    #[expect(
        deprecated,
        reason = "its successor is unsafe, for descriptors that close early; an OwnedFd stays open as long as it lives"
    )]
    let timer: AsyncFd<OwnedFd> = AsyncFd::new(timer)?;
    while read() < at {
        timer.readable().await?.retain_ready();
    }
    Ok(())
}

/// Without a timer (the process is out of file descriptors) the deadline must still come.
async fn wait_in_steps(at: BootInstant) {
    const STEP: Duration = Duration::from_millis(20);
    loop {
        let left = read().until(at);
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(STEP)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_timer_fires_at_its_instant_and_not_before() {
        let clock = BootClock;
        let at = clock.now().after(Duration::from_millis(30));
        clock.sleep_until(at).await;
        assert!(clock.now() >= at);
        assert!(at.until(clock.now()) < Duration::from_secs(5));
    }

    #[tokio::test]
    async fn a_timer_in_the_past_fires_at_once() {
        BootClock.sleep_until(BootInstant::from_nanos(0)).await;
    }

    #[tokio::test]
    async fn without_a_timer_the_instant_still_comes() {
        let at = read().after(Duration::from_millis(30));
        wait_in_steps(at).await;
        assert!(read() >= at);
    }
}
