// Services in Go. MODE names one.
package main

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
)

type item struct {
	ID   int
	Name string
	Tags []string
}

// What a garbage collection has to walk.
var live []*item

var writers = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

func items(count int) []*item {
	made := make([]*item, 0)
	for id := 0; id < count; id++ {
		made = append(made, &item{id, "name", []string{"new", "sale", "last"}})
	}
	return made
}

func list(response http.ResponseWriter, _ *http.Request) {
	body, _ := json.Marshal(items(300))
	response.Write(body)
}

// The writer of each response is new, or one of a pool.
func zipped(response http.ResponseWriter, _ *http.Request) {
	response.Header().Set("Content-Encoding", "gzip")
	writer := gzip.NewWriter(response)
	if os.Getenv("WRITER") == "pooled" {
		writer = writers.Get().(*gzip.Writer)
		writer.Reset(response)
		defer writers.Put(writer)
	}
	json.NewEncoder(writer).Encode(items(30))
	writer.Close()
}

func main() {
	live = items(200_000)
	mode := map[string]http.HandlerFunc{"list": list, "zipped": zipped}[os.Getenv("MODE")]
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), mode))
}
