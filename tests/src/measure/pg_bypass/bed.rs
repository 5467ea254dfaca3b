//! One leg's database: its roles, the guarded table, and what is said about each statement tried there.

use std::cell::RefCell;
use std::fs;

use pause_kit::services::{DatabaseUrl, Services};
use tokio_postgres::error::DbError;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::measure::Failure;
use crate::measure::run::root;

/// The class of the guarded tables, in the tier `bypass`.
pub(super) const CLASS: &str = "bypass.account";

/// Who tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A role with the rights that an application needs, and more of them where a way needs more.
    Application,
    /// The owner of the database, the guard and the guarded tables, who is no superuser.
    Owner,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::Application => "application role",
            Role::Owner => "owner",
        }
    }
}

/// One leg's database.
pub(super) struct Bed<'run> {
    pub(super) services: &'run Services,
    pub(super) role: Role,
    /// The database as the superuser, as the owner, and as the application role.
    pub(super) superuser: DatabaseUrl,
    pub(super) owner: DatabaseUrl,
    pub(super) application: DatabaseUrl,
    /// What doctor finds in this state, before anything was done.
    usual: RefCell<Vec<Finding>>,
    said: RefCell<Vec<String>>,
    tried: RefCell<usize>,
}

/// A finding of doctor's, and what it is about.
type Finding = (String, String);

/// How a statement that is tried is answered.
pub(super) enum Answer {
    Applied,
    Refused(Box<DbError>),
}

impl Bed<'_> {
    /// With the guard, installed by the owner, and the guarded table `payment` with a row of `acct-1` and one of `acct-2`.
    pub(super) async fn make(services: &Services, number: usize, role: Role) -> Result<Bed<'_>, Failure> {
        let postgres = services.postgres().ok_or("no PostgreSQL")?;
        let name = format!("bypass_{number}");
        let owner = postgres
            .create_database(&name, &format!("owner_{number}"))
            .await?;
        let login = postgres.create_login(&format!("app_{number}")).await?;
        let bed = Bed {
            services,
            role,
            superuser: postgres.superuser_url_of(&name),
            application: postgres.url(&name, &login),
            owner,
            usual: RefCell::default(),
            said: RefCell::default(),
            tried: RefCell::default(),
        };
        let app = bed.app();
        bed.superuser(&format!("GRANT CONNECT, TEMPORARY ON DATABASE {name} TO {app}"))
            .await?;
        bed.install().await?;
        bed.owner(&format!(
            "SELECT fence.declare('{CLASS}', 'bypass');
             SELECT fence.register_epoch('bypass', 1);
             CREATE TABLE payment (id integer PRIMARY KEY, account text NOT NULL, amount bigint NOT NULL);
             INSERT INTO payment VALUES (1, 'acct-1', 10), (2, 'acct-2', 20);
             SELECT fence.protect('payment', '{CLASS}', 'account');
             ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {app};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {app};
             SELECT fence.grant_application('{app}');"
        ))
        .await?;
        *bed.usual.borrow_mut() = bed.findings().await?;
        Ok(bed)
    }

    /// Applies the guard's own SQL as the owner.
    async fn install(&self) -> Result<(), Failure> {
        let mut files: Vec<_> = fs::read_dir(root().join("fence-pg/sql"))?.collect::<Result<Vec<_>, _>>()?;
        files.sort_by_key(fs::DirEntry::file_name);
        let client = connect(&self.owner).await?;
        for file in files {
            let text = fs::read_to_string(file.path())?;
            let applied = client.batch_execute(&text).await;
            applied.map_err(|error| format!("{}: {}", file.path().display(), said(&error)))?;
        }
        Ok(())
    }

    /// The application role's name.
    pub(super) fn app(&self) -> &str {
        &self.application.login().role
    }

    /// The name of the role that tries.
    pub(super) fn who(&self) -> &str {
        &self.url().login().role
    }

    /// The database as the role that tries.
    pub(super) fn url(&self) -> &DatabaseUrl {
        match self.role {
            Role::Application => &self.application,
            Role::Owner => &self.owner,
        }
    }

    /// Prepares something as the owner.
    pub(super) async fn owner(&self, sql: &str) -> Result<(), Failure> {
        run(&self.owner, sql).await
    }

    /// Prepares something as the superuser.
    pub(super) async fn superuser(&self, sql: &str) -> Result<(), Failure> {
        run(&self.superuser, sql).await
    }

    /// Must be refused with this code, and change nothing, in a transaction that admitted these keys.
    pub(super) async fn refused(&self, keys: &[&str], sql: &str, code: &str) -> Result<(), Failure> {
        let before = self.rows().await?;
        match self.attempt(keys, sql, "COMMIT").await? {
            Answer::Applied => return Err(format!("went through: {sql}").into()),
            Answer::Refused(error) if error.code().code() != code => {
                return Err(format!(
                    "refused with {} ({}), not with {code}: {sql}",
                    error.code().code(),
                    error.message()
                )
                .into());
            }
            Answer::Refused(_) => {}
        }
        if self.rows().await? != before {
            return Err(format!("refused with {code}, and something was changed: {sql}").into());
        }
        self.say(code.to_owned());
        Ok(())
    }

    /// The control: the same goes through, and changes something, where these keys are admitted. It is rolled back.
    pub(super) async fn control(&self, keys: &[&str], sql: &str) -> Result<(), Failure> {
        let client = connect(self.url()).await?;
        let before = rows(&client).await?;
        client.batch_execute("BEGIN").await?;
        for statement in keys.iter().map(|key| admit(key)).chain([sql.to_owned()]) {
            let done = client.batch_execute(&statement).await;
            done.map_err(|error| format!("the control failed: {}: {statement}", said(&error)))?;
        }
        let changed = rows(&client).await? != before;
        client.batch_execute("ROLLBACK").await?;
        if !changed {
            return Err(format!("the control changed nothing: {sql}").into());
        }
        self.say("applied when admitted".to_owned());
        Ok(())
    }

    /// Goes through, so doctor must name it, and what it is about, in the state that it leaves.
    pub(super) async fn named(&self, sql: &str, finding: &str, object: &str) -> Result<(), Failure> {
        if let Answer::Refused(error) = self.attempt(&[], sql, "COMMIT").await? {
            return Err(format!(
                "refused with {} ({}), but was expected to go through: {sql}",
                error.code().code(),
                error.message()
            )
            .into());
        }
        self.finds(finding, object).await
    }

    /// Doctor, asked by the owner about the role that tries, names this now, and did not in the usual state; but that an owner
    /// tries is what it says from the beginning.
    pub(super) async fn finds(&self, finding: &str, object: &str) -> Result<(), Failure> {
        let found = self.findings().await?;
        let wanted = (finding.to_owned(), object.to_owned());
        if !found.contains(&wanted) {
            return Err(format!("doctor does not name {finding} of {object}, only {found:?}").into());
        }
        if finding != super::finding::OWNER && self.usual.borrow().contains(&wanted) {
            return Err(format!("doctor names {finding} of {object} whatever is done").into());
        }
        self.count();
        self.say(format!("doctor: {finding}"));
        Ok(())
    }

    async fn findings(&self) -> Result<Vec<Finding>, Failure> {
        let client = connect(&self.owner).await?;
        let sql = format!(
            "SELECT finding, object FROM fence.doctor(ARRAY['{}']::name[])",
            self.who()
        );
        let answered = client.query(&sql, &[]).await;
        let answered = answered.map_err(|error| format!("doctor: {}", said(&error)))?;
        Ok(answered.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Tries a statement, after admissions, in one transaction that ends so.
    pub(super) async fn attempt(&self, keys: &[&str], sql: &str, end: &str) -> Result<Answer, Failure> {
        let client = connect(self.url()).await?;
        client.batch_execute("BEGIN").await?;
        for key in keys {
            let admitted = client.batch_execute(&admit(key)).await;
            admitted.map_err(|error| format!("{key} was not admitted: {}", said(&error)))?;
        }
        self.count();
        let tried = client.batch_execute(sql).await;
        match tried {
            Ok(()) => match client.batch_execute(end).await {
                Ok(()) => Ok(Answer::Applied),
                Err(error) => Answer::of(error),
            },
            Err(error) => Answer::of(error),
        }
    }

    /// What all tables of the schema `public` hold now, as the superuser sees it.
    pub(super) async fn rows(&self) -> Result<String, Failure> {
        rows(&connect(&self.superuser).await?).await
    }

    /// Notes what was answered.
    pub(super) fn say(&self, what: String) {
        self.said.borrow_mut().push(what);
    }

    /// Counts something that was tried.
    pub(super) fn count(&self) {
        *self.tried.borrow_mut() += 1;
    }

    /// What has been noted, each answer once with the number of statements that got it.
    pub(super) fn told(&self) -> String {
        let mut counted: Vec<(String, usize)> = Vec::new();
        for said in self.said.borrow().iter() {
            match counted.iter_mut().find(|(known, _)| known == said) {
                Some((_, times)) => *times += 1,
                None => counted.push((said.clone(), 1)),
            }
        }
        let shown = counted.iter().map(|(said, times)| match times {
            1 => said.clone(),
            _ => format!("{said} x{times}"),
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    /// What has been noted, provided that anything was tried.
    pub(super) fn checked(&self) -> Result<String, Failure> {
        match *self.tried.borrow() {
            0 => Err("nothing was tried".into()),
            _ => Ok(self.told()),
        }
    }
}

impl Answer {
    /// The server's answer; a lost connection is none.
    pub(super) fn of(error: tokio_postgres::Error) -> Result<Answer, Failure> {
        match error.as_db_error() {
            Some(refusal) => Ok(Answer::Refused(Box::new(refusal.clone()))),
            None => Err(error.into()),
        }
    }
}

/// An admission of a key, by one grant for each key.
pub(super) fn admit(key: &str) -> String {
    format!(
        "SELECT fence.admit('{CLASS}', '{key}', {}, 'grant-{key}')",
        (1_i64 << 48) + 10
    )
}

pub(super) async fn connect(url: &DatabaseUrl) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url.as_str(), NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

pub(super) async fn run(url: &DatabaseUrl, sql: &str) -> Result<(), Failure> {
    let client = connect(url).await?;
    let done = client.batch_execute(sql).await;
    done.map_err(|error| format!("{}: {sql}", said(&error)).into())
}

/// An error with its code.
pub(super) fn said(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(refusal) => format!("{} {}", refusal.code().code(), refusal.message()),
        None => error.to_string(),
    }
}

/// Every row of every table in the schema `public`, by table.
async fn rows(client: &Client) -> Result<String, Failure> {
    let tables = "SELECT c.oid::regclass::text FROM pg_class c
                  WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 1";
    let mut all = String::new();
    for table in texts(client, tables).await? {
        let rows = texts(client, &format!("SELECT t::text FROM ONLY {table} t ORDER BY 1")).await?;
        all += &format!("{table}: {}\n", rows.join(" "));
    }
    Ok(all)
}

async fn texts(client: &Client, sql: &str) -> Result<Vec<String>, Failure> {
    let messages = client
        .simple_query(sql)
        .await
        .map_err(|error| format!("{}: {sql}", said(&error)))?;
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    Ok(rows.collect())
}
