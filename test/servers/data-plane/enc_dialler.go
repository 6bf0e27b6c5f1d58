package main

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"time"
)

// The dialling side with one flow, which tries one rule of the document after the other at a hop whose target answers "t:" and
// what was sent.
type encDialler struct {
	hopPublic []byte
	address   *net.UDPAddr
	socket    *net.UDPConn
	sessions  []*session // the newest last
}

const answerWithin = 400 * time.Millisecond
const tries = 20

func dialEnc(address string, hopPublic []byte) {
	to := must(net.ResolveUDPAddr("udp", address))
	dialler := &encDialler{hopPublic: hopPublic, address: to, socket: must(net.DialUDP("udp", nil, to))}
	results := map[string]bool{}
	check := func(name string, ok bool) { results[name] = ok }

	check("handshake", dialler.shakeHands())
	check("datagram", dialler.ask("question") && dialler.ask(""))
	check("largest without fragments", dialler.ask(strings.Repeat("x", 1_422)))
	check("ping", dialler.ping())
	check("other kinds are ignored", dialler.ignored())
	check("any order", dialler.anyOrder())
	check("each counter once", dialler.once())
	check("no counter below the window", dialler.window())
	check("a forged packet changes nothing", dialler.forged())
	old := dialler.current()
	check("rekey", dialler.rekey() && dialler.ask("in the new session"))
	check("the old session is heard, and answered in the new one", dialler.askIn(old, "late"))
	check("another address", dialler.moved())
	say(results)
}

func (of *encDialler) current() *session { return of.sessions[len(of.sessions)-1] }

func (of *encDialler) transmit(packet []byte) { must(of.socket.Write(packet)) }

// The next packet that takes holds for the one that it waits for.
func (of *encDialler) await(takes func(packet []byte) bool) bool {
	buffer := make([]byte, 65_535)
	_ = of.socket.SetReadDeadline(time.Now().Add(answerWithin))
	for {
		size, err := of.socket.Read(buffer)
		if err != nil {
			return false
		}
		if takes(bytes.Clone(buffer[:size])) {
			return true
		}
	}
}

// Awaits something inside the sessions. The hop must send in the newest one that it knows to be used.
func (of *encDialler) awaitInside(in *session, takes func(kind byte, content []byte) bool) bool {
	return of.await(func(packet []byte) bool {
		if packet[0] != transportPacket || !bytes.Equal(packet[1:5], in.own) {
			return false
		}
		kind, content, _, ok := in.open(packet)
		return ok && takes(kind, content)
	})
}

func (of *encDialler) shakeHands() bool {
	for range tries {
		index, state := newIndex(), newHandshake(of.hopPublic)
		of.transmit(joined([]byte{handshakePacket}, keyId(of.hopPublic), index, state.first(of.hopPublic, newKey())))
		if of.await(func(packet []byte) bool {
			if len(packet) != answerBytes || packet[0] != answerPacket || !bytes.Equal(packet[1:5], index) {
				return false
			}
			return of.changeTo(index, packet[5:9], state, packet[9:])
		}) {
			return true
		}
	}
	return false
}

func (of *encDialler) changeTo(own, peer []byte, state *handshake, message []byte) bool {
	if state.finish(message) != nil {
		return false
	}
	send, receive := state.split()
	of.sessions = append(of.sessions, newSession(own, bytes.Clone(peer), send, receive))
	return true
}

func (of *encDialler) ask(question string) bool { return of.askIn(of.current(), question) }

// Asks in a session, and wants the answer in the current one. Asks again, since datagrams may be lost.
func (of *encDialler) askIn(in *session, question string) bool {
	for range tries {
		of.transmit(in.seal(kindDatagram, []byte(question)))
		if of.answered(question) {
			return true
		}
	}
	return false
}

func (of *encDialler) answered(question string) bool {
	return of.awaitInside(of.current(), func(kind byte, content []byte) bool {
		return kind == kindDatagram && string(content) == "t:"+question
	})
}

func (of *encDialler) ping() bool {
	for range tries {
		of.transmit(of.current().seal(kindPing, []byte("anything")))
		if of.awaitInside(of.current(), func(kind byte, _ []byte) bool { return kind == kindPong }) {
			return true
		}
	}
	return false
}

func (of *encDialler) ignored() bool {
	of.transmit(of.current().seal(9, []byte("of a later version")))
	of.transmit(of.current().seal(kindRekey, []byte("of another length")))
	return of.ask("after what is ignored")
}

func (of *encDialler) anyOrder() bool {
	for attempt := range tries {
		missing := map[string]bool{}
		first := of.current().next
		for at := range uint64(3) {
			missing[fmt.Sprintf("t:order %d %d", attempt, at)] = true
		}
		for _, at := range []uint64{2, 0, 1} {
			of.transmit(of.current().sealAt(first+at, kindDatagram, fmt.Appendf(nil, "order %d %d", attempt, at)))
		}
		of.current().next += 3
		if of.awaitInside(of.current(), func(_ byte, content []byte) bool {
			delete(missing, string(content))
			return len(missing) == 0
		}) {
			return true
		}
	}
	return false
}

// Whether a packet gets no answer, as a question after it that is answered shows.
func (of *encDialler) unanswered(packet []byte, question string) bool {
	heard := false
	of.transmit(packet)
	of.transmit(packet)
	for attempt := range tries {
		end := fmt.Sprintf("after %s %d", question, attempt)
		of.transmit(of.current().seal(kindDatagram, []byte(end)))
		if of.awaitInside(of.current(), func(_ byte, content []byte) bool {
			heard = heard || string(content) == "t:"+question
			return string(content) == "t:"+end
		}) {
			return !heard
		}
	}
	return false
}

func (of *encDialler) once() bool {
	for attempt := range tries {
		question := fmt.Sprintf("once %d", attempt)
		packet := of.current().seal(kindDatagram, []byte(question))
		of.transmit(packet)
		if of.answered(question) {
			return of.unanswered(packet, question)
		}
	}
	return false
}

func (of *encDialler) window() bool {
	tooOld, justIn := of.current().next, of.current().next+1
	of.current().next += windowPackets
	if !of.ask("far ahead") {
		return false
	}
	// Those that were asked again are all that is newer.
	highest := of.current().next - 1
	within := highest - windowPackets + 1
	if within <= justIn {
		within = justIn + 1
	}
	of.transmit(of.current().sealAt(within, kindDatagram, []byte("just in")))
	heard := false
	for attempt := 0; attempt < tries && !heard; attempt++ {
		heard = of.answered("just in")
	}
	return heard && of.unanswered(of.current().sealAt(tooOld, kindDatagram, []byte("too old")), "too old")
}

func (of *encDialler) forged() bool {
	packet := of.current().sealAt(of.current().next+100_000, kindDatagram, []byte("forged"))
	packet[len(packet)-1] ^= 1
	return of.unanswered(packet, "forged")
}

func (of *encDialler) rekey() bool {
	before := of.current()
	for range tries {
		index, state := newIndex(), newHandshake(of.hopPublic)
		before.next++
		of.transmit(before.sealAt(before.next-1, kindRekey, joined(index, state.first(of.hopPublic, newKey()))))
		if of.awaitInside(before, func(kind byte, content []byte) bool {
			if kind != kindRekeyAnswer || len(content) != 8+messageBytes || !bytes.Equal(content[:4], index) {
				return false
			}
			return of.changeTo(index, content[4:8], state, content[8:])
		}) {
			return of.ping()
		}
	}
	return false
}

// The same flow from another port: what is asked there is answered there.
func (of *encDialler) moved() bool {
	of.socket = must(net.DialUDP("udp", nil, of.address))
	return of.ask("from elsewhere")
}
