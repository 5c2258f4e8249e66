// A small server for go.sh: pages that allocate, start threads and processes;
// ends in order at SIGTERM.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

func spin(w http.ResponseWriter, r *http.Request) {
	var wait sync.WaitGroup
	var lock sync.Mutex
	sum := 0
	for i := 0; i < 20; i++ {
		wait.Add(1)
		go func(n int) {
			defer wait.Done()
			time.Sleep(time.Microsecond * time.Duration(n))
			lock.Lock()
			sum += n
			lock.Unlock()
		}(i)
	}
	wait.Wait()
	fmt.Fprintln(w, "sum", sum)
}

func main() {
	http.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello from go")
	})
	http.HandleFunc("/spin", spin)
	http.HandleFunc("/gc", func(w http.ResponseWriter, r *http.Request) {
		var keep [][]byte
		for i := 0; i < 200; i++ {
			keep = append(keep, make([]byte, 100000))
		}
		runtime.GC()
		fmt.Fprintln(w, "kept", len(keep))
	})
	http.HandleFunc("/exec", func(w http.ResponseWriter, r *http.Request) {
		out, err := exec.Command("sh", "-c", "echo from a child; exit 4").Output()
		fmt.Fprintln(w, string(out), err)
	})
	server := &http.Server{Addr: os.Args[1]}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	done := make(chan bool)
	go func() {
		<-stop
		server.Shutdown(context.Background())
		done <- true
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		fmt.Println(err)
		os.Exit(1)
	}
	<-done
	os.Exit(5)
}
