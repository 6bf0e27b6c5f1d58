package main

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"slices"
	"sync"
)

// One flow as the hop keeps it.
type encFlow struct {
	address *net.UDPAddr
	current *session
	// Of the newest rekey, until the dialler uses it.
	next *session
}

// The listening side, whose flows answer "t:" and "u:" before what was sent, each packet twice and the later ones first. With each
// line of its standard input it says what it has seen; the line "forget" makes it forget all sessions as well.
type encHop struct {
	mutex  sync.Mutex
	flows  map[string]*encFlow // by the index of a session
	opened map[string]*session
	seen   map[string]int
	socket *net.UDPConn
}

func serveEnc(private []byte) {
	hop := privateKey(private)
	socket := must(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	of := &encHop{socket: socket, flows: map[string]*encFlow{}, opened: map[string]*session{}, seen: map[string]int{}}
	say(map[string]int{"port": socket.LocalAddr().(*net.UDPAddr).Port})
	go func() {
		buffer := make([]byte, 65_535)
		for {
			size, from, err := socket.ReadFromUDP(buffer)
			if err != nil {
				return
			}
			of.mutex.Lock()
			packet := bytes.Clone(buffer[:size])
			switch {
			case len(packet) == handshakeBytes && packet[0] == handshakePacket && bytes.Equal(packet[1:9], keyId(hop.PublicKey().Bytes())):
				if made, answer := answerTo(hop, packet[9:13], packet[13:]); made != nil {
					of.seen["handshakes"]++
					of.opened[string(made.own)] = made
					of.transmit(from, joined([]byte{answerPacket}, packet[9:13], made.own, answer))
				}
			case len(packet) > headerBytes+16 && packet[0] == transportPacket:
				of.take(packet, from, func(dialler, message []byte) (*session, []byte) { return answerTo(hop, dialler, message) })
			default:
				of.seen["others"]++
			}
			of.mutex.Unlock()
		}
	}()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		of.mutex.Lock()
		if lines.Text() == "forget" {
			clear(of.flows)
			clear(of.opened)
		}
		say(of.seen)
		of.mutex.Unlock()
	}
}

func (of *encHop) transmit(to *net.UDPAddr, packets ...[]byte) {
	for _, packet := range slices.Backward(packets) {
		for range 2 {
			must(of.socket.WriteToUDP(packet, to))
		}
	}
}

func (of *encHop) take(packet []byte, from *net.UDPAddr, answer func(dialler, message []byte) (*session, []byte)) {
	index := string(packet[1:5])
	in := of.opened[index]
	if in == nil {
		of.seen["of no session"]++
		return
	}
	kind, content, newest, ok := in.open(packet)
	if !ok {
		of.seen["not opened"]++
		return
	}
	flow := of.flows[index]
	if flow == nil {
		of.seen["flows"]++
		flow = &encFlow{address: from, current: in}
		of.flows[index] = flow
	}
	if flow.next == in {
		of.seen["changes of session"]++
		flow.current, flow.next = in, nil
	}
	if newest && flow.current == in {
		flow.address = from
	}
	switch kind {
	case kindDatagram:
		of.seen["datagrams"]++
		first := flow.current.seal(kindDatagram, joined([]byte("t:"), content))
		second := flow.current.seal(kindDatagram, joined([]byte("u:"), content))
		of.transmit(flow.address, first, second)
	case kindPing:
		of.seen["pings"]++
		of.transmit(flow.address, flow.current.seal(kindPong, nil))
	case kindRekey:
		if len(content) != 4+messageBytes {
			return
		}
		made, message := answer(bytes.Clone(content[:4]), content[4:])
		if made == nil {
			return
		}
		of.seen["rekeys"]++
		flow.next = made
		of.opened[string(made.own)], of.flows[string(made.own)] = made, flow
		of.transmit(flow.address, flow.current.seal(kindRekeyAnswer, joined(content[:4], made.own, message)))
	}
}
