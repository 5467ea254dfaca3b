//! Every way of writing round the guard, tried for real as an application role and as the owner of the table: refused with
//! the guard's or PostgreSQL's own word and nothing changed, or named by `fence.doctor` in that very state.

mod apply;
mod around;
mod bed;
mod dump;
mod finding;
mod rows;
mod shapes;

use std::future::Future;
use std::pin::Pin;

use pause_kit::reaper::ReaperCommand;
use pause_kit::services::{Services, ServicesConfig};

use super::{Failure, Figure};
use bed::{Bed, Role};

/// One way, tried as the bed's role.
type Trial<'bed> = Pin<Box<dyn Future<Output = Result<(), Failure>> + 'bed>>;
type Way = for<'bed> fn(&'bed Bed<'bed>) -> Trial<'bed>;

const WAYS: &[(&str, Way)] = &[
    ("INSERT", |bed| Box::pin(rows::insert(bed))),
    ("UPDATE", |bed| Box::pin(rows::update(bed))),
    ("UPDATE of the key", |bed| Box::pin(rows::update_of_the_key(bed))),
    ("DELETE", |bed| Box::pin(rows::delete(bed))),
    ("TRUNCATE", |bed| Box::pin(rows::truncate(bed))),
    ("COPY", |bed| Box::pin(rows::copy(bed))),
    ("MERGE", |bed| Box::pin(rows::merge(bed))),
    ("ON CONFLICT", |bed| Box::pin(rows::on_conflict(bed))),
    ("cascade", |bed| Box::pin(around::cascade(bed))),
    ("view or rule", |bed| Box::pin(around::view_or_rule(bed))),
    ("leaf partition", |bed| Box::pin(shapes::leaf_partition(bed))),
    ("new partition", |bed| Box::pin(shapes::new_partition(bed))),
    ("detached partition", |bed| {
        Box::pin(shapes::detached_partition(bed))
    }),
    ("inheritance child", |bed| {
        Box::pin(shapes::inheritance_child(bed))
    }),
    ("writable CTE", |bed| Box::pin(rows::writable_cte(bed))),
    ("another definer's function", |bed| {
        Box::pin(around::definers_function(bed))
    }),
    ("later trigger that changes the key", |bed| {
        Box::pin(around::later_trigger(bed))
    }),
    ("replica role", |bed| Box::pin(apply::replica_role(bed))),
    ("logical apply", |bed| Box::pin(apply::logical_apply(bed))),
    ("DDL", |bed| Box::pin(around::ddl(bed))),
    ("dump and restore", |bed| Box::pin(dump::dump_and_restore(bed))),
];

pub(crate) fn pg_bypass() -> Result<Figure, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(all())
}

async fn all() -> Result<Figure, Failure> {
    let config = ServicesConfig {
        reaper: ReaperCommand::find()?,
        postgres: true,
        etcd: Vec::new(),
    };
    let services = Services::start(config).await?;
    let (mut shut, mut legs) = (0, 0);
    for (way, trial) in WAYS {
        for role in [Role::Application, Role::Owner] {
            legs += 1;
            let verdict = match tried(&services, legs, role, *trial).await {
                Ok(how) => {
                    shut += 1;
                    how
                }
                Err(error) => format!("OPEN: {error}"),
            };
            println!("{way:<35} {:<17} {verdict}", role.name());
        }
    }
    Ok(Figure {
        line: format!("{shut} of {legs} ways refused, or named by doctor in that state"),
        reached: shut == legs && legs == 42,
    })
}

/// Tries one way in a database of its own, and says what was answered.
async fn tried(services: &Services, number: usize, role: Role, trial: Way) -> Result<String, Failure> {
    let bed = Bed::make(services, number, role).await?;
    trial(&bed)
        .await
        .map_err(|error| format!("{error} (before that: {})", bed.told()))?;
    bed.checked()
}
