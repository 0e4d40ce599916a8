//! Every store passes the one suite.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use sluice_store::Store;

mod memory {
    use super::Store;

    fn place() -> ((), impl Fn() -> Store) {
        let store = Store::open("memory:").unwrap();
        ((), move || store.clone())
    }

    sluice_store::conformance!(place);
}

mod sqlite {
    use super::Store;

    fn place() -> (tempfile::TempDir, impl Fn() -> Store) {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", folder.path().join("store.db").display());
        (folder, move || Store::open(&address).unwrap())
    }

    sluice_store::conformance!(place);
}

mod postgres {
    use super::Store;
    use sluice_store::testing::Cluster;

    fn place() -> ((), impl Fn() -> Store) {
        let address = Cluster::shared().database();
        ((), move || Store::open(&address).unwrap())
    }

    sluice_store::conformance!(place);
}
