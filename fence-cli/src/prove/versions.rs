//! Versions of etcd that a proof should not be run on.

/// What is known about an etcd of this version, if anything.
pub(super) fn warning(version: &str) -> Option<String> {
    let [major, minor, patch] = parts(version)?;
    let (renewals, reads) = match (major, minor) {
        (3, 4) => (38, 42),
        (3, 5) => (23, 28),
        (3, 6) => (5, 9),
        (3, 0..4) | (0..3, _) => (u32::MAX, u32::MAX),
        _ => return None,
    };
    if patch < renewals {
        Some(format!(
            "etcd {version} can confirm a renewal falsely and serve stale reads around a pause; use 3.4.42, 3.5.28, 3.6.9 \
             or newer"
        ))
    } else if patch < reads {
        Some(format!(
            "etcd {version} can serve stale reads around a pause; use 3.4.42, 3.5.28, 3.6.9 or newer"
        ))
    } else {
        None
    }
}

fn parts(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split(['.', '-', '+']).map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

#[cfg(test)]
mod tests {
    use super::warning;

    #[test]
    fn the_first_sound_version_of_each_line_gets_no_warning_and_the_one_before_does() {
        for sound in ["3.4.42", "3.5.28", "3.6.9", "3.7.0", "4.0.0", "3.6.10-rc.1"] {
            assert_eq!(warning(sound), None, "{sound}");
        }
        for stale in ["3.4.41", "3.5.27", "3.6.8"] {
            assert!(
                warning(stale).unwrap().contains("can serve stale reads"),
                "{stale}"
            );
        }
        for false_renewal in ["3.4.37", "3.5.22", "3.6.4", "3.3.25", "2.3.8"] {
            assert!(
                warning(false_renewal).unwrap().contains("falsely"),
                "{false_renewal}"
            );
        }
    }
}
