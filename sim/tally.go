package sim

// Tally counts what befell a world, beside what its network did. A plan whose
// faults never happened shows nothing.
type Tally struct {
	Kills     int // processes that ended at a write
	Starts    int // processes that started on a profile that was used before
	Stops     int // stops and starts of the service
	Restores  int // of the service, from an older backup
	Behind    int // messages that were acknowledged between backup and restore
	Absences  int // devices that were put away
	Weeks     int // times that forty days passed
	Further   int // devices that came to an account that had one
	Lost      int // devices that were lost and revoked
	Raced     int // requests to append that somebody else's action came before
	Answers   int // messages of bots
	BotStarts int // restarts of bots
	Copies    int // profiles that were copied
	Cut       int // processes that stopped because a copy was in use
	Twice     int // keys that two copies used for two messages
	Orphans   int // rooms newer than the backup whose maker is gone
	Moved     int // rooms in which one goes on that a restore has lost
	Outside   int // devices that said at the end that a chat went on without them
}

// need is one number that must not be zero.
type need struct {
	what  string
	times int
}

// Idle lists what the plan asks for and the run never met. One run may lack one
// thing by chance; what every run of a plan lacks, the plan does not show.
func (w *World) Idle() (never []string) {
	c, t := w.network.Counts(), w.tally
	needs := []need{{"a message was acknowledged", len(w.said)}}
	ask := func(asked bool, n ...need) {
		if asked {
			needs = append(needs, n...)
		}
	}
	f := w.Faults
	ask(f.LoseRequest > 0, need{"a request was lost", c.LostRequests})
	ask(f.LoseAnswer > 0, need{"an answer was lost", c.LostAnswers})
	ask(f.Double > 0, need{"a request came twice", c.Doubled})
	ask(f.CutAnswer > 0, need{"an answer broke off", c.Cut})
	ask(w.Crash > 0, need{"a process was killed at a write", t.Kills}, need{"a killed process started again", t.Starts})
	ask(w.Stop > 0, need{"the service stopped", t.Stops})
	ask(w.Away > 0, need{"a device was put away", t.Absences})
	ask(w.Weeks, need{"forty days passed", t.Weeks})
	ask(w.Lose, need{"a device was lost", t.Lost}, need{"a further device came", t.Further})
	ask(w.Backup, need{"the service was restored", t.Restores}, need{"the backup lacked a message", t.Behind})
	ask(w.Orphan, need{"a room lost its maker", t.Orphans}, need{"a lost room went on", t.Moved})
	ask(w.Race > 0, need{"somebody came between a request and its sender", t.Raced}, need{"a request was too late for its epoch", c.Stale})
	ask(w.Bots > 0, need{"a bot answered", t.Answers}, need{"a bot started again", t.BotStarts})
	ask(w.Copy > 0, need{"a profile was copied", t.Copies}, need{"a copy stopped because of the other one", t.Cut})
	for _, n := range needs {
		if n.times == 0 {
			never = append(never, n.what)
		}
	}
	return never
}
