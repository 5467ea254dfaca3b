//! The ways in which guards are broken, each with what finds it.

/// What finds it.
pub(super) enum Found {
    /// These files under `tests/mutants`.
    Mutants(&'static [&'static str]),
    /// It is no mutant of a guard that a scenario plays: a test plays it, for this reason.
    Test {
        package: &'static str,
        name: &'static str,
        why: &'static str,
    },
}

use Found::{Mutants, Test};

pub(super) const KNOWN: &[(&str, Found)] = &[
    (
        "less or equal for less, and the other way round",
        Mutants(&[
            "002_refuses_equal.sql",
            "003_reversed.sql",
            "004_off_by_one.sql",
            "sql/051_column_refuses_equal.sql",
            "sql/052_column_reversed.sql",
        ]),
    ),
    ("no predicate", Mutants(&["001_no_predicate.sql"])),
    (
        "checked outside the transaction",
        Mutants(&["service/002_admitted_in_another_transaction.txt"]),
    ),
    (
        "an equal token only locks the row",
        Mutants(&["018_equal_only_locks.sql"]),
    ),
    (
        "admission as a CTE of the write",
        Test {
            package: "fence-pg",
            name: "decisions::admission_and_write_in_one_statement_spend_twice_and_in_two_or_in_one_function_once",
            why: "a write that reads nothing is the same either way, and one that reads is refused on every protected table; \
                  without protection it spends twice there",
        },
    ),
    (
        "row count ignored",
        Mutants(&["service/001_row_count_ignored.txt"]),
    ),
    (
        "missing or empty token let in",
        Mutants(&[
            "011_missing_token_let_in.sql",
            "012_missing_grant_let_in.sql",
            "025_empty_grant_let_in.sql",
            "service/009_missing_token_let_in.txt",
        ]),
    ),
    (
        "token read as a double, as 32 bits, as text",
        Mutants(&[
            "015_compared_as_text.sql",
            "016_compared_as_double.sql",
            "017_compared_as_32_bits.sql",
        ]),
    ),
    (
        "the first header of two",
        Mutants(&["service/011_first_header_of_two.txt"]),
    ),
    (
        "checked at the headers, written outside that transaction",
        Mutants(&["service/003_checked_at_the_headers.txt"]),
    ),
    (
        "the mark in memory, per replica or not keyed",
        Mutants(&[
            "service/004_mark_in_memory.txt",
            "020_mark_per_session.sql",
            "007_mark_not_keyed.sql",
        ]),
    ),
    (
        "the write commits while its mark rolls back",
        Mutants(&["service/005_mark_rolled_back.txt"]),
    ),
    (
        "an effect outside the transaction before the check",
        Mutants(&["service/006_effect_before_the_check.txt"]),
    ),
    (
        "an equal token of another grant let in",
        Mutants(&["009_collision_accepted.sql"]),
    ),
    (
        "ranges ignored",
        Mutants(&["010_ranges_ignored.sql", "023_ranges_of_any_tier.sql"]),
    ),
    (
        "trigger not ALWAYS, for one verb, not on partitions, BEFORE",
        Mutants(&[
            "sql/016_trigger_not_always.sql",
            "sql/014_one_verb_alone.sql",
            "sql/017_later_partitions_unguarded.sql",
            "sql/015_trigger_before.sql",
        ]),
    ),
    (
        "a notice for an exception",
        Mutants(&["005_stale_is_a_notice.sql", "sql/019_refusal_is_a_notice.sql"]),
    ),
    (
        "40001, or the tag ROLLBACK, taken for success",
        Mutants(&[
            "service/012_serialization_failure_taken_for_success.txt",
            "service/007_rollback_taken_for_success.txt",
        ]),
    ),
    (
        "the token taken from a read",
        Mutants(&["service/008_token_from_a_read.txt"]),
    ),
    (
        "a given-up acquire that lands",
        Test {
            package: "fence-lock",
            name: "conformance::wrong::the_suite_fails_every_wrong_store_by_the_case_named_beforehand",
            why: "a wrong lock store and no guard: the suite of stores fails it by given-up-on-its-way",
        },
    ),
];
