//! Writes that come to the guarded table through something else, and changes of the table itself.

use super::bed::{Answer, Bed, CLASS, Role};
use super::finding;
use crate::measure::Failure;

const BOTH: &[&str] = &["acct-1", "acct-9"];

pub(super) async fn cascade(bed: &Bed<'_>) -> Result<(), Failure> {
    bed.owner(
        "CREATE TABLE account (id text PRIMARY KEY);
         CREATE TABLE batch (id integer PRIMARY KEY);
         INSERT INTO account VALUES ('acct-1'), ('acct-2');
         INSERT INTO batch VALUES (1);
         ALTER TABLE payment ADD batch integer DEFAULT 1 REFERENCES batch ON DELETE SET NULL;
         ALTER TABLE payment ADD FOREIGN KEY (account) REFERENCES account ON DELETE CASCADE ON UPDATE CASCADE;",
    )
    .await?;
    let delete = "DELETE FROM account WHERE id = 'acct-1'";
    bed.refused(&[], delete, "ZF002").await?;
    bed.refused(&["acct-2"], delete, "ZF006").await?;
    bed.control(&["acct-1"], delete).await?;
    let rename = "UPDATE account SET id = 'acct-9' WHERE id = 'acct-1'";
    bed.refused(&[], rename, "ZF002").await?;
    bed.refused(&["acct-1"], rename, "ZF006").await?;
    bed.control(BOTH, rename).await?;
    let unset = "DELETE FROM batch";
    bed.refused(&[], unset, "ZF002").await?;
    bed.refused(&["acct-1"], unset, "ZF006").await?;
    bed.control(&["acct-1", "acct-2"], unset).await
}

pub(super) async fn view_or_rule(bed: &Bed<'_>) -> Result<(), Failure> {
    bed.owner(
        "CREATE VIEW plain AS SELECT * FROM payment;
         CREATE VIEW chosen AS SELECT id, account AS who, amount FROM payment WHERE amount > 0 WITH CHECK OPTION;
         CREATE VIEW handled AS SELECT * FROM payment;
         CREATE FUNCTION handle() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
         BEGIN INSERT INTO payment VALUES (NEW.id, NEW.account, NEW.amount); RETURN NEW; END $$;
         CREATE TRIGGER handle INSTEAD OF INSERT ON handled FOR EACH ROW EXECUTE FUNCTION handle();
         CREATE TABLE inbox (id integer, account text, amount bigint);
         CREATE RULE pass_on AS ON INSERT TO inbox DO ALSO INSERT INTO payment VALUES (NEW.id, NEW.account, NEW.amount);
         CREATE RULE settle AS ON UPDATE TO inbox DO INSTEAD UPDATE payment SET amount = NEW.amount WHERE id = 1;
         INSERT INTO inbox SELECT 9, 'acct-1', 1 WHERE false;",
    )
    .await?;
    bed.superuser("ALTER TABLE inbox DISABLE RULE pass_on; INSERT INTO inbox VALUES (1, 'acct-1', 1); ALTER TABLE inbox ENABLE RULE pass_on")
        .await?;
    for sql in [
        "INSERT INTO plain VALUES (3, 'acct-1', 5)",
        "UPDATE chosen SET amount = 7 WHERE who = 'acct-1'",
        "DELETE FROM plain WHERE id = 1",
        "INSERT INTO handled VALUES (3, 'acct-1', 5)",
        "INSERT INTO inbox VALUES (3, 'acct-1', 5)",
        "UPDATE inbox SET amount = 99",
    ] {
        bed.refused(&[], sql, "ZF002").await?;
        bed.refused(&["acct-2"], sql, "ZF006").await?;
        bed.control(&["acct-1"], sql).await?;
    }
    // A rule on the guarded table itself turns a statement into another, and both are asked for.
    bed.owner("CREATE RULE turn AS ON UPDATE TO payment DO INSTEAD DELETE FROM payment WHERE id = OLD.id")
        .await?;
    bed.refused(&[], "UPDATE payment SET amount = 0 WHERE id = 1", "ZF002")
        .await?;
    bed.control(&["acct-1"], "UPDATE payment SET amount = 0 WHERE id = 1")
        .await
}

pub(super) async fn definers_function(bed: &Bed<'_>) -> Result<(), Failure> {
    let definer = format!("definer_{}", bed.who());
    bed.superuser(&format!(
        "CREATE ROLE {definer}; GRANT INSERT, UPDATE, SELECT ON payment TO {definer};
         CREATE FUNCTION public.pay(row_id integer) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public
         AS $$ INSERT INTO payment VALUES (row_id, 'acct-1', 5) $$;
         ALTER FUNCTION public.pay OWNER TO {definer};"
    ))
    .await?;
    bed.owner(
        "CREATE FUNCTION owners_pay(row_id integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = public
         AS $$ BEGIN EXECUTE format('INSERT INTO payment VALUES (%s, %L, 5)', row_id, 'acct-1'); END $$",
    )
    .await?;
    for sql in ["SELECT pay(3)", "SELECT owners_pay(4)"] {
        bed.refused(&[], sql, "ZF002").await?;
        bed.refused(&["acct-2"], sql, "ZF006").await?;
        bed.control(&["acct-1"], sql).await?;
    }
    Ok(())
}

pub(super) async fn later_trigger(bed: &Bed<'_>) -> Result<(), Failure> {
    let trigger = |when: &str, body: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION turn_{when}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NEW; END $$;
             CREATE TRIGGER zzzz_turn {when} INSERT ON payment FOR EACH ROW EXECUTE FUNCTION turn_{when}()"
        )
    };
    let before = trigger("before", "NEW.account := 'acct-2';");
    let after = trigger(
        "after",
        "UPDATE payment SET account = 'acct-2' WHERE id = NEW.id;",
    );
    bed.owner(&format!("GRANT CREATE ON SCHEMA public TO {}", bed.app()))
        .await?;
    if bed.role == Role::Application {
        bed.refused(&[], &before, "42501").await?;
        // One right more than an application needs, which doctor names; it does not help either.
        bed.owner(&format!("GRANT TRIGGER ON payment TO {}", bed.app()))
            .await?;
        bed.finds(finding::TRIGGER_GRANT, "public.payment").await?;
    }
    let sql = "INSERT INTO payment VALUES (3, 'acct-1', 5)";
    for (turned, needed) in [(before, &["acct-2"][..]), (after, &["acct-1", "acct-2"][..])] {
        if let Answer::Refused(error) = bed.attempt(&[], &turned, "COMMIT").await? {
            return Err(format!("{}: {turned}", error.message()).into());
        }
        bed.refused(&[], sql, "ZF002").await?;
        bed.refused(&["acct-1"], sql, "ZF006").await?;
        bed.control(needed, sql).await?;
        bed.owner("DROP TRIGGER zzzz_turn ON payment").await?;
    }
    Ok(())
}

pub(super) async fn ddl(bed: &Bed<'_>) -> Result<(), Failure> {
    let off = "ALTER TABLE payment DISABLE TRIGGER USER";
    let less = "DO $$ DECLARE name name; BEGIN FOR name IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'payment'::regclass
                AND NOT tgisinternal LOOP EXECUTE format('ALTER TABLE payment ENABLE TRIGGER %I', name); END LOOP; END $$";
    let dropped = "DO $$ DECLARE name name; BEGIN FOR name IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'payment'::regclass
                   AND NOT tgisinternal LOOP EXECUTE format('DROP TRIGGER %I ON payment', name); END LOOP; END $$";
    let rewritten = "ALTER TABLE payment ALTER amount TYPE bigint USING 0";
    let swapped =
        "ALTER TABLE payment RENAME TO payment_was; CREATE TABLE payment (LIKE payment_was INCLUDING ALL)";
    let replaced = "CREATE OR REPLACE FUNCTION fence.admit(class text, key text, token bigint, grant_id text DEFAULT NULL)
                    RETURNS void LANGUAGE sql AS 'SELECT'";
    let all = [
        off,
        less,
        dropped,
        rewritten,
        swapped,
        replaced,
        "DROP TABLE payment",
        "DROP SCHEMA fence CASCADE",
    ];
    match bed.role {
        Role::Application => {
            for sql in all {
                bed.refused(&[], sql, "42501").await?;
            }
            // Nor may it touch what the guard keeps.
            for sql in [
                "UPDATE fence.high_water SET token = 1",
                "DELETE FROM fence.epoch_range",
                "INSERT INTO fence.class (name) VALUES ('bypass.other')",
                "SELECT fence.register_epoch('bypass', 2)",
                "SELECT fence.declare('bypass.other')",
            ] {
                bed.refused(&[], sql, "42501").await?;
            }
            Ok(())
        }
        Role::Owner => {
            let protect = format!("SELECT fence.protect('payment', '{CLASS}', 'account')");
            let forgotten = "UPDATE payment SET amount = amount + 1 WHERE id = 1";
            for (sql, finding, object) in [
                (off, finding::TRIGGER_OFF, "public.payment"),
                (less, finding::TRIGGER_NOT_ALWAYS, "public.payment"),
                (dropped, finding::TRIGGER_MISSING, "public.payment"),
            ] {
                bed.named(sql, finding, object).await?;
                if sql != less {
                    bed.named(forgotten, finding, object).await?;
                }
                bed.owner(&protect).await?;
                bed.refused(&[], forgotten, "ZF002").await?;
                bed.control(&["acct-1"], forgotten).await?;
            }
            // What leaves no state behind is the owner's own, and an application must not be one.
            for sql in [rewritten, swapped, replaced] {
                bed.named(sql, finding::OWNER, bed.who()).await?;
            }
            Ok(())
        }
    }
}
