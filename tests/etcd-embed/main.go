// A newer etcd server than the machine's, from etcd's own module: the whole program with all its flags.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
