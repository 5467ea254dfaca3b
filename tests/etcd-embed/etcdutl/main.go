// The tool that restores snapshots for the newer server, from etcd's own module: `etcdutl snapshot`.
package main

import (
	"os"

	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
)

func main() {
	command := etcdutl.NewSnapshotCommand()
	command.Use = "snapshot"
	command.SetArgs(os.Args[2:])
	if err := command.Execute(); err != nil {
		os.Exit(1)
	}
}
