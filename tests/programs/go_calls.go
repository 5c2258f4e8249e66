// Makes calls from Go, and, where it is built with it, from C.
package main

import (
	"fmt"
	"os"
	"syscall"
)

func main() {
	for i := 0; i < 20000; i++ {
		if syscall.Getppid() <= 0 || fromC() <= 0 {
			os.Exit(1)
		}
	}
	fmt.Println("go_calls: ok")
}
