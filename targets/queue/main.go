// A service whose queue is known: a response comes when a simulated server is done with it, and costs next to no CPU time.
//
//	SERVICE_MS    mean service time                                      [1]
//	SERVERS       of them, with one line before all                      [1]
//	DISTRIBUTION  exponential, constant, log-normal (sigma 1), or pauses:
//	              exponential, and one request of 500 takes 25 ms more   [exponential]
//	LINE          requests that may wait; more get 503                   [no limit]
//
// For exponential service and one server the p99 of the time in the system is ln(100) / (µ − λ), so that its capacity within a limit is known.
package main

import (
	"log"
	"math"
	"math/rand"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

type queue struct {
	mutex sync.Mutex
	draw  func() float64
	free  []time.Time // when each server is done with what it has
	ends  []time.Time // of what waits or is served
	line  int
}

func number(name string, otherwise float64) float64 {
	text, isSet := os.LookupEnv(name)
	if !isSet {
		return otherwise
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value < 0 {
		log.Fatalf("%s=%q: not a number from 0", name, text)
	}
	return value
}

func newQueue() *queue {
	meanS := number("SERVICE_MS", 1) / 1e3
	draw := func() float64 { return rand.ExpFloat64() * meanS }
	switch kind := os.Getenv("DISTRIBUTION"); kind {
	case "", "exponential":
	case "constant":
		draw = func() float64 { return meanS }
	case "log-normal":
		draw = func() float64 { return meanS * math.Exp(rand.NormFloat64()-0.5) }
	case "pauses":
		draw = func() float64 {
			if rand.Intn(500) == 0 {
				return rand.ExpFloat64()*meanS + 0.025
			}
			return rand.ExpFloat64() * meanS
		}
	default:
		log.Fatalf("DISTRIBUTION=%q: not exponential, constant, log-normal or pauses", kind)
	}
	servers := max(1, int(number("SERVERS", 1)))
	return &queue{draw: draw, free: make([]time.Time, servers), line: int(number("LINE", 1e9))}
}

// join is when the request is done; false where the line is full.
func (queue *queue) join(now time.Time) (time.Time, bool) {
	queue.mutex.Lock()
	defer queue.mutex.Unlock()
	queue.ends = slices.DeleteFunc(queue.ends, func(end time.Time) bool { return !end.After(now) })
	if len(queue.ends)-len(queue.free) >= queue.line {
		return now, false
	}
	first := 0
	for server, free := range queue.free {
		if free.Before(queue.free[first]) {
			first = server
		}
	}
	begin := now
	if queue.free[first].After(now) {
		begin = queue.free[first]
	}
	end := begin.Add(time.Duration(queue.draw() * 1e9))
	queue.free[first] = end
	queue.ends = append(queue.ends, end)
	return end, true
}

func main() {
	queue := newQueue()
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	body := []byte("done\n")
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		end, isServed := queue.join(time.Now())
		if !isServed {
			http.Error(response, "the line is full", http.StatusServiceUnavailable)
			return
		}
		time.Sleep(time.Until(end))
		_, _ = response.Write(body)
	})))
}
