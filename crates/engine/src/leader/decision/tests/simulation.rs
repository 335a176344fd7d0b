//! Several replicas, one Lease, and a network and machines that do their worst: requests and answers that are late or
//! lost, processes that stand still and go on, die, or are replaced; clocks that agree on nothing but their pace.

use proptest::prelude::*;

use super::*;
use crate::fence::{Fence, Gate};

/// Simulated time goes in steps of 100 ms.
const TICK: Duration = Duration::from_millis(100);
const SECOND: u64 = 10;
const RETRY: u64 = 2 * SECOND;
const CALL_TIMEOUT: u64 = 5 * SECOND;
/// After the storm: long enough for an abandoned lease to end and be taken.
const QUIET: u64 = 60 * SECOND;

/// How bad the world is. Chances are in a thousand: per message for the network, per second for the machines.
#[derive(Debug, Clone)]
struct Weather {
    replicas: usize,
    seed: u64,
    loss: u64,
    longest_delay: u64,
    freeze: u64,
    longest_freeze: u64,
    restart: u64,
    crash: u64,
    deletions: bool,
}

fn weather() -> impl Strategy<Value = Weather> {
    let network = (0..400u64, 1..20 * SECOND);
    let machines = (0..60u64, SECOND..60 * SECOND, 0..20u64, 0..5u64);
    (2..5usize, any::<u64>(), network, machines).prop_map(|(replicas, seed, network, machines)| Weather {
        replicas,
        seed,
        loss: network.0,
        longest_delay: network.1,
        freeze: machines.0,
        longest_freeze: machines.1,
        restart: machines.2,
        crash: machines.3,
        deletions: false,
    })
}

/// A request on its way, or its answer on the way back.
struct Flight {
    from: usize,
    number: u64,
    arrives: u64,
    cargo: Cargo,
}

enum Cargo {
    Ask(Step),
    Found(Option<Known>),
    Written(Known),
    Refused,
}

struct Replica {
    candidate: Candidate,
    gate: Gate,
    fence: Fence,
    /// Its monotonic clock began at another time than the others'.
    clock_offset: Duration,
    alive: bool,
    frozen_until: u64,
    rests_until: u64,
    asked: Option<Asked>,
    seen_a_lease: bool,
}

/// The request that a replica waits for.
struct Asked {
    number: u64,
    sent: Instant,
    gives_up: u64,
}

struct World {
    start: Instant,
    now: u64,
    random: u64,
    weather: Weather,
    replicas: Vec<Replica>,
    lease: Option<Known>,
    versions: u32,
    flights: Vec<Flight>,
    requests: u64,
    born: u64,
    /// Since when there is a Lease.
    made: u64,
    terms: usize,
}

impl World {
    fn new(weather: Weather) -> Self {
        let mut world = Self {
            start: Instant::now(),
            now: 0,
            random: weather.seed | 1,
            replicas: Vec::new(),
            lease: None,
            versions: 0,
            flights: Vec::new(),
            requests: 0,
            born: 0,
            made: 0,
            terms: 0,
            weather,
        };
        for _ in 0..world.weather.replicas {
            let replica = world.new_replica();
            world.replicas.push(replica);
        }
        world
    }

    fn new_replica(&mut self) -> Replica {
        self.born += 1;
        let clock_offset = TICK * u32::try_from(self.below(10_000)).unwrap();
        let (fence, gate) = Fence::closed("lease");
        let name = format!("replica-{}", self.born);
        Replica {
            candidate: Candidate::new(&name, LEASE, DEADLINE, self.start + clock_offset + self.passed()),
            gate,
            fence,
            clock_offset,
            alive: true,
            frozen_until: 0,
            rests_until: self.now + self.below(RETRY),
            asked: None,
            seen_a_lease: false,
        }
    }

    fn passed(&self) -> Duration {
        TICK * u32::try_from(self.now).unwrap()
    }

    /// The time on a replica's own clock.
    fn clock_of(&self, replica: usize) -> Instant {
        self.start + self.replicas[replica].clock_offset + self.passed()
    }

    /// Nobody may compare these, so they are nonsense.
    fn wall_clock(&mut self) -> Timestamp {
        clock(i64::try_from(self.below(4_000_000_000)).unwrap())
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % bound.max(1)
    }

    fn chance(&mut self, in_a_thousand: u64) -> bool {
        self.below(1000) < in_a_thousand
    }

    fn run(&mut self, ticks: u64) -> Result<(), TestCaseError> {
        for _ in 0..ticks {
            self.now += 1;
            if self.now.is_multiple_of(SECOND) {
                self.befall();
            }
            self.deliver();
            for replica in 0..self.replicas.len() {
                if self.replicas[replica].alive && self.now >= self.replicas[replica].frozen_until {
                    self.act(replica);
                }
            }
            // An open fence lets through whoever thaws the next moment, so the frozen count too.
            let open = self.open_fences();
            prop_assert!(open.len() <= 1, "{:?} may write at {}", open, self.now);
        }
        Ok(())
    }

    fn run_in_calm(&mut self) -> Result<(), TestCaseError> {
        let calm =
            Weather { loss: 0, longest_delay: 1, freeze: 0, restart: 0, crash: 0, ..self.weather.clone() };
        self.weather = Weather { deletions: false, ..calm };
        for replica in &mut self.replicas {
            replica.frozen_until = 0;
        }
        self.run(QUIET)
    }

    fn open_fences(&self) -> Vec<usize> {
        (0..self.replicas.len())
            .filter(|&replica| self.replicas[replica].fence.is_open_at(self.clock_of(replica)))
            .collect()
    }

    /// What happens to machines in a second.
    fn befall(&mut self) {
        let Weather { freeze, longest_freeze, restart, crash, deletions, .. } = self.weather;
        for replica in 0..self.replicas.len() {
            if self.chance(freeze) {
                self.replicas[replica].frozen_until = self.now + self.below(longest_freeze);
            }
            if self.chance(restart) && self.replicas[replica].alive {
                self.restart(replica);
            }
            // Somebody has to be left to take over.
            if self.chance(crash) && self.replicas.iter().filter(|replica| replica.alive).count() > 1 {
                self.replicas[replica].alive = false;
            }
        }
        // A replica cannot know that a Lease was deleted which it has never seen, or which was there for a moment only.
        let known = self.replicas.iter().all(|replica| replica.seen_a_lease || !replica.alive);
        let lasting = self.lease.is_some() && self.now > self.made + 20 * SECOND;
        if deletions && known && lasting && self.chance(30) {
            self.lease = None;
        }
    }

    /// An orderly end, and a new process in its place.
    fn restart(&mut self, replica: usize) {
        let wall = self.wall_clock();
        self.replicas[replica].gate.close();
        if let Some((version, spec)) = self.replicas[replica].candidate.release(wall) {
            self.send(replica, Step::Change { version, spec });
        }
        let frozen_until = self.replicas[replica].frozen_until;
        self.replicas[replica] = Replica { frozen_until, ..self.new_replica() };
    }

    fn send(&mut self, from: usize, step: Step) -> u64 {
        self.requests += 1;
        self.fly(from, self.requests, Cargo::Ask(step));
        self.requests
    }

    fn fly(&mut self, from: usize, number: u64, cargo: Cargo) {
        if !self.chance(self.weather.loss) {
            let arrives = self.now + self.below(self.weather.longest_delay);
            self.flights.push(Flight { from, number, arrives, cargo });
        }
    }

    /// Requests reach the server, also those whose sender has given up, stands still or is dead.
    fn deliver(&mut self) {
        let now = self.now;
        let due = |flight: &mut Flight| matches!(flight.cargo, Cargo::Ask(_)) && flight.arrives <= now;
        let arrived: Vec<_> = self.flights.extract_if(.., due).collect();
        for Flight { from, number, cargo, .. } in arrived {
            if let Cargo::Ask(step) = cargo {
                let answer = self.serve(step);
                self.fly(from, number, answer);
            }
        }
    }

    fn serve(&mut self, step: Step) -> Cargo {
        let spec = match (step, &self.lease) {
            (Step::Read, lease) => return Cargo::Found(lease.clone()),
            (Step::Create(spec), None) => spec,
            (Step::Change { version, spec }, Some(known)) if known.version == version => spec,
            _ => return Cargo::Refused,
        };
        if self.lease.is_none() {
            self.made = self.now;
        }
        self.versions += 1;
        let lease = Known { version: self.versions.to_string(), spec };
        self.lease = Some(lease.clone());
        Cargo::Written(lease)
    }

    /// One replica goes on until it has to wait, as the real loop does.
    fn act(&mut self, me: usize) {
        if self.replicas[me].asked.is_some() && !self.hear(me) {
            return;
        }
        if self.now < self.replicas[me].rests_until {
            return;
        }
        let (now, wall) = (self.clock_of(me), self.wall_clock());
        match self.replicas[me].candidate.next(now, wall) {
            Step::Lost => {
                self.replicas[me].gate.close();
                self.replicas[me].candidate.resign();
            }
            Step::Wait { .. } => self.rest(me),
            step => {
                let number = self.send(me, step);
                self.replicas[me].asked =
                    Some(Asked { number, sent: now, gives_up: self.now + CALL_TIMEOUT });
            }
        }
    }

    /// Takes the answer, if it is there, or gives up; says whether the wait is over.
    fn hear(&mut self, me: usize) -> bool {
        let now = self.clock_of(me);
        let Some(Asked { number, sent, gives_up }) = self.replicas[me].asked.take() else { return true };
        let late = self.now >= gives_up || self.replicas[me].candidate.ends().is_some_and(|ends| now >= ends);
        let answer = self.flights.iter().position(|flight| {
            !matches!(flight.cargo, Cargo::Ask(_)) && flight.number == number && flight.arrives <= self.now
        });
        // After a freeze the answer and the end of patience are there together, and either may be seen first.
        let answer = if late && self.chance(500) { None } else { answer };
        let Some(answer) = answer else {
            if late {
                self.rest(me);
            } else {
                self.replicas[me].asked = Some(Asked { number, sent, gives_up });
            }
            return late;
        };
        let replica = &mut self.replicas[me];
        match self.flights.remove(answer).cargo {
            Cargo::Found(lease) => {
                replica.seen_a_lease |= lease.is_some();
                replica.candidate.observe(lease, now);
            }
            Cargo::Written(lease) => {
                self.terms += usize::from(replica.candidate.ends().is_none());
                replica.seen_a_lease = true;
                replica.candidate.written(lease, sent, now);
                if let Some(ends) = replica.candidate.ends() {
                    replica.gate.open_until(ends);
                }
                self.rest(me);
            }
            Cargo::Refused | Cargo::Ask(_) => replica.candidate.look_again(),
        }
        true
    }

    fn rest(&mut self, me: usize) {
        let period = RETRY - self.below(SECOND / 2);
        let replica = &mut self.replicas[me];
        if replica.candidate.ends().is_none() {
            replica.candidate.look_again();
        }
        replica.rests_until = self.now + period;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_write_passes_a_fence_while_anothers_is_open(weather in weather()) {
        let mut world = World::new(weather);
        world.run(240 * SECOND)?;
        world.run_in_calm()?;
        prop_assert_eq!(world.open_fences().len(), 1, "a free or abandoned lease is taken in the end");
    }

    #[test]
    fn a_deleted_lease_does_not_make_two_leaders(weather in weather()) {
        // A request to make the Lease must not be under way from before anybody knew it.
        let longest_delay = weather.longest_delay.min(SECOND);
        let mut world = World::new(Weather { deletions: true, restart: 0, longest_delay, ..weather });
        world.run(400 * SECOND)?;
        world.run_in_calm()?;
        prop_assert_eq!(world.open_fences().len(), 1);
    }
}

/// The simulation proves something only if terms begin and end in it.
#[test]
fn the_simulated_world_is_lively() {
    let mut world = World::new(Weather {
        replicas: 3,
        seed: 42,
        loss: 200,
        longest_delay: 4 * SECOND,
        freeze: 40,
        longest_freeze: 30 * SECOND,
        restart: 10,
        crash: 0,
        deletions: false,
    });
    world.run(1200 * SECOND).unwrap();
    assert!(world.terms > 20, "{} terms", world.terms);
}
