// A MongoDB-compatible server for the tests: FerretDB, embedded, with its data in SQLite files. It is not part of the
// product and holds nothing secret; it listens on 127.0.0.1 only.
//
// Clients reach it through a small relay. FerretDB looks a document up and then writes it, in two steps, while MongoDB
// changes a document atomically, and the read store relies on that. So the relay lets only one writing command pass at a
// time; everything else passes freely.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on, of 127.0.0.1")
	data := flag.String("data", "", "folder of the SQLite files; it is made when it is missing")
	withStdin := flag.Bool("end-with-stdin", false, "end when standard input ends, so that no orphan stays behind")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if *withStdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	if err := run(ctx, *listen, *data); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until the context is done.
func run(ctx context.Context, listen, data string) error {
	if !strings.HasPrefix(listen, "127.0.0.1:") {
		return errors.New("-listen must be an address of 127.0.0.1")
	}
	folder, err := dataFolder(data)
	if err != nil {
		return err
	}
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Handler:   "sqlite",
		SQLiteURL: "file:" + folder,
	})
	if err != nil {
		return err
	}
	front, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	// Answers once FerretDB listens.
	inner, err := url.Parse(server.MongoDBURI())
	if err != nil {
		return err
	}
	go serve(front, inner.Host)
	fmt.Printf("mongodb://%s/\n", front.Addr())
	err = <-ended
	_ = front.Close()
	return err
}

// dataFolder creates the folder and returns its path as FerretDB expects it: absolute, with a slash at the end.
func dataFolder(path string) (string, error) {
	if path == "" {
		return "", errors.New("-data is missing")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(absolute, 0o700); err != nil {
		return "", err
	}
	return absolute + "/", nil
}
