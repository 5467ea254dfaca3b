//! Days as they are written: the UTC calendar, `2026-11-29`.

use fence_core::{Day, Days};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

const EPOCH: Date = Date::constant(1970, 1, 1);

/// The day that a text names.
pub(super) fn day(text: &str) -> Result<Day, String> {
    let parsed: Option<Date> = text.parse().ok();
    match parsed.filter(|date| date.to_string() == text) {
        Some(date) => Ok(of(date)),
        None => Err("a day is a date of the calendar, such as 2026-11-29".to_owned()),
    }
}

/// A number of days that a text names.
pub(super) fn days(text: &str) -> Result<Days, String> {
    let number = text.strip_suffix('d').filter(|number| number.len() <= 4);
    let digits = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse().ok());
    number
        .map(Days::new)
        .ok_or_else(|| "days are 0d to 9999d, such as 30d".to_owned())
}

/// The UTC day now.
pub(super) fn today() -> Day {
    of(Timestamp::now().to_zoned(TimeZone::UTC).date())
}

/// The UTC day of an instant in the form of RFC 3339.
pub(super) fn day_of_instant(text: &str) -> Option<Day> {
    let instant: Timestamp = text.parse().ok()?;
    Some(of(instant.to_zoned(TimeZone::UTC).date()))
}

/// The day of a date.
pub(super) fn of(date: Date) -> Day {
    Day::from_epoch((date - EPOCH).get_days())
}

/// A day as it is written.
pub(super) fn written(day: Day) -> String {
    match EPOCH.checked_add(day.since_epoch().days()) {
        Ok(date) => date.to_string(),
        Err(_) => format!("day {} since {EPOCH}", day.since_epoch()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_read_as_it_is_written_and_in_no_other_form() {
        for text in [
            "1970-01-01",
            "1969-12-31",
            "2026-11-29",
            "2028-02-29",
            "9999-12-31",
        ] {
            assert_eq!(written(day(text).unwrap()), text);
        }
        for text in [
            "",
            "2026-02-29",
            "2026-11-31",
            "20261129",
            "2026-1-2",
            "2026-11-29T00:00",
            "29.11.2026",
        ] {
            assert!(day(text).is_err(), "{text:?}");
        }
        assert_eq!(day("1970-01-31").unwrap(), Day::from_epoch(30));
    }

    #[test]
    fn an_instant_belongs_to_its_day_in_utc() {
        let late = day_of_instant("2026-11-29T23:30:00-05:00").unwrap();
        assert_eq!(written(late), "2026-11-30");
        assert_eq!(day_of_instant("2026-11-29"), None);
    }

    #[test]
    fn days_are_a_number_and_a_d() {
        assert_eq!(days("30d"), Ok(Days::new(30)));
        assert_eq!(days("0d"), Ok(Days::new(0)));
        for text in ["30", "d", "-1d", "+1d", "1.5d", "10000d", "30 d"] {
            assert!(days(text).is_err(), "{text:?}");
        }
    }
}
