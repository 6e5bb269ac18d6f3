extension TrainingLoop {
    /// The hyperparameters of a loop.
    public struct Options: Sendable {
        /// The rounds: epochs, or phases.
        public var rounds: Rounds
        /// The optimizer.
        public var optimizer: OptimizerConfiguration
        /// Factors of the learning rate by node; see `OptimizerConfiguration`.
        public var learningRateFactors: [String: Float] = [:]
        /// The decay of the exponential moving average of the parameters, 0 < decay < 1; nil for none.
        ///
        /// After step t the average moves by 1 − min(decay, (1 + t) / (10 + t)) towards the parameters, so that the first steps do not
        /// dominate it.
        public var averageDecay: Float?
        /// The number of rounds without an improvement in validation loss after which training stops; nil for never.
        public var patience: Int?
        /// The first round (from 0) that counts for `patience`.
        public var firstPatientRound = 0
        /// The time after which training stops, over all parts of a run; nil for no limit.
        public var timeLimit: Duration?
        /// Whether the parameters of the best round are kept.
        public var keepsBest = true
        /// Whether a resumed run repeats its unfinished round if photos could not be read in it.
        package var restartsRoundAfterLoss = true

        /// Makes options.
        public init(rounds: Rounds, optimizer: OptimizerConfiguration, averageDecay: Float? = nil) {
            self.rounds = rounds
            self.optimizer = optimizer
            self.averageDecay = averageDecay
        }
    }

    /// How a run is divided into rounds, after each of which the parameters are validated.
    public enum Rounds: Sendable {
        /// Epochs of equal length that share one learning-rate schedule.
        case epochs(Epochs)
        /// Phases that each restart the optimizer, its schedule and the average; a phase continues from the averaged parameters of the
        /// one before.
        case phases([Phase])

        /// Epochs of equal length.
        public struct Epochs: Sendable {
            /// The number of epochs.
            public var count: Int
            /// The number of steps of an epoch; an epoch ends earlier if the objective has no more batches.
            public var steps: Int
            /// The peak learning rate.
            public var learningRate: Float
            /// The schedule over all epochs.
            public var decay: LearningRateSchedule.Decay
            /// Whether the learning rate warms up during the first of several epochs.
            public var warmsUp: Bool
            /// The epochs (from 0) after the first in which it warms up again.
            public var warmUps: Set<Int> = []

            /// Makes epochs.
            public init(
                count: Int, steps: Int, learningRate: Float, decay: LearningRateSchedule.Decay = .cosine(final: 0.01),
                warmsUp: Bool = true
            ) {
                self.count = count
                self.steps = steps
                self.learningRate = learningRate
                self.decay = decay
                self.warmsUp = warmsUp
            }
        }

        /// One phase.
        public struct Phase: Sendable {
            /// The number of steps.
            public var steps: Int
            /// The peak learning rate.
            public var learningRate: Float
            /// The schedule over the phase.
            public var schedule: LearningRateSchedule

            /// Makes a phase.
            public init(steps: Int, learningRate: Float, schedule: LearningRateSchedule) {
                self.steps = steps
                self.learningRate = learningRate
                self.schedule = schedule
            }
        }

        /// The number of rounds.
        var count: Int {
            switch self {
            case .epochs(let epochs): epochs.count
            case .phases(let phases): phases.count
            }
        }

        /// Whether each round starts with a new optimizer and average.
        var restarts: Bool { if case .phases = self { true } else { false } }

        /// Whether the objective tells where a round ends.
        var endsByObjective: Bool { !restarts }

        func steps(of round: Int) -> Int {
            switch self {
            case .epochs(let epochs): epochs.steps
            case .phases(let phases): phases[round].steps
            }
        }

        func learningRate(of round: Int) -> Float {
            switch self {
            case .epochs(let epochs): epochs.learningRate
            case .phases(let phases): phases[round].learningRate
            }
        }

        /// The number of optimizer steps before a round.
        func stepsBefore(round: Int) -> Int {
            switch self {
            case .epochs(let epochs): round * epochs.steps
            case .phases: 0
            }
        }

        /// The factor of the learning rate at a step of a round.
        func factor(round: Int, step: Int, plannedRounds: Int) -> Float {
            switch self {
            case .epochs(let epochs):
                let warmUpSteps = epochs.warmsUp && plannedRounds > 1 ? epochs.steps : 0
                let factor = LearningRateSchedule(epochs.decay, warmUpSteps: warmUpSteps)
                    .factor(at: round * epochs.steps + step, of: plannedRounds * epochs.steps)
                return epochs.warmUps.contains(round) ? factor * Float(step + 1) / Float(epochs.steps) : factor
            case .phases(let phases):
                return phases[round].schedule.factor(at: step, of: phases[round].steps)
            }
        }
    }
}
