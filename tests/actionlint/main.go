// Lints workflows of GitHub Actions: the linter's own command, at the version of its module that is pinned here.
package main

import (
	"os"

	"github.com/rhysd/actionlint"
)

func main() {
	command := actionlint.Command{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(command.Main(os.Args))
}
