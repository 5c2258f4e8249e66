// A static Go program: no libc, its own threads, signals and vDSO look-up.
// It serves HTTP to itself, with timers, many goroutines, a child process and
// preemption by signals (which Go sends to itself all the time).
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go http.Serve(listener, http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Millisecond)
			fmt.Fprintf(w, "path %s", r.URL.Path)
		}))
	return "http://" + listener.Addr().String()
}

func fetch(url string, group *sync.WaitGroup) {
	defer group.Done()
	for i := 0; i < 20; i++ {
		reply, err := http.Get(fmt.Sprintf("%s/%d", url, i))
		must(err)
		body, err := io.ReadAll(reply.Body)
		must(err)
		reply.Body.Close()
		if string(body) != fmt.Sprintf("path /%d", i) {
			must(fmt.Errorf("wrong body %q", body))
		}
	}
}

func spin(until time.Time) {
	for n := 0; time.Now().Before(until); n++ {
		runtime.KeepAlive(n)
	}
}

func signals() {
	got := make(chan os.Signal, 10)
	signal.Notify(got, syscall.SIGUSR1, syscall.SIGSYS)
	for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGSYS} {
		must(syscall.Kill(os.Getpid(), sig))
		if s := <-got; s != sig {
			must(fmt.Errorf("wrong signal %v", s))
		}
	}
}

func panics() {
	defer func() {
		if recover() == nil {
			must(fmt.Errorf("no panic"))
		}
	}()
	var p *int
	*p = 1
}

func main() {
	url := serve()
	var group sync.WaitGroup
	for i := 0; i < 10; i++ {
		group.Add(1)
		go fetch(url, &group)
	}
	for i := 0; i < 4; i++ {
		go spin(time.Now().Add(200 * time.Millisecond))
	}
	group.Wait()
	signals()
	for i := 0; i < 100; i++ {
		panics()
	}
	for i := 0; i < 10; i++ {
		out, err := exec.Command("/bin/echo", "from a child").Output()
		must(err)
		if strings.TrimSpace(string(out)) != "from a child" {
			must(fmt.Errorf("wrong output %q", out))
		}
	}
	begun := time.Now()
	<-time.After(20 * time.Millisecond)
	if time.Since(begun) < 20*time.Millisecond {
		must(fmt.Errorf("a short timer"))
	}
	runtime.GC()
	fmt.Println("go_server: ok")
}
