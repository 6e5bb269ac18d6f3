extension TrainingLoop {
    /// The hyperparameters of a training loop.
    public struct Options: Sendable {
        /// The rounds: epochs, or phases.
        public var rounds: Rounds
        /// The optimizer.
        public var optimizer: OptimizerConfiguration
        /// Factors of the learning rate by node name, ≥ 0; the default is 1.
        ///
        /// `SGD` and `AdamW` multiply the learning rate of a node's parameters, and with it their weight decay, by the factor. With a factor of 0,
        /// the parameters do not change. Names that the network does not have are ignored; a negative factor is a programming error.
        public var learningRateFactors: [String: Float] = [:]
        /// The decay of the exponential moving average (EMA) of the parameters, 0 < decay < 1; nil for no EMA.
        ///
        /// After step t (from 0), ema ← d · ema + (1 − d) · parameters with d = min(decay, (1 + t) / (10 + t)). The smaller d in the first steps
        /// reduces the weight of the initial parameters.
        public var emaDecay: Float?
        /// The number of rounds without an improvement in validation loss after which training stops, ≥ 1; nil disables early stopping.
        public var patience: Int?
        /// The first round (from 0) that counts towards `patience`.
        public var firstPatientRound = 0
        /// The time after which training stops, including the time before a resume; nil for no limit.
        public var timeLimit: Duration?
        /// The time in seconds that this part of the run has taken before the loop, such as to read photos and choose hyperparameters; it counts
        /// towards `timeLimit`.
        package var secondsBefore = 0.0
        /// Returns the current time.
        package var now: @Sendable () -> ContinuousClock.Instant = { .now }
        /// Whether to keep a snapshot of the parameters of the best round.
        public var keepsBest = true
        /// Whether to validate the initial parameters, and to keep them unless a round is at least as accurate; see
        /// `TrainingProgress.startAccuracy`.
        public var evaluatesStart = false
        /// Whether a round may end with parameters that are not finite, as in a learning-rate range test.
        package var allowsDivergence = false
        /// Whether a resumed run repeats its unfinished round if photos became unreadable.
        package var restartsRoundAfterUnreadablePhotos = true

        /// Creates options.
        public init(rounds: Rounds, optimizer: OptimizerConfiguration, emaDecay: Float? = nil) {
            self.rounds = rounds
            self.optimizer = optimizer
            self.emaDecay = emaDecay
        }
    }

    /// The rounds of a run; each ends with a validation of the parameters.
    public enum Rounds: Sendable {
        /// Epochs of equal length that share one learning-rate schedule.
        case epochs(Epochs)
        /// Phases, at least one, that each restart the optimizer, the learning-rate schedule and the EMA; a phase continues from the EMA parameters
        /// of the previous phase.
        case phases([Phase])

        /// Epochs of equal length with one learning-rate schedule.
        public struct Epochs: Sendable {
            /// The number of epochs.
            public var count: Int
            /// The number of steps per epoch; an epoch ends earlier if the objective has no more batches.
            public var steps: Int
            /// The peak learning rate.
            public var learningRate: Float
            /// The shape of the schedule over all epochs.
            public var scheduleShape: LearningRateSchedule.Shape
            /// Whether the learning rate warms up during the first epoch, if there are several.
            public var warmsUpFirstEpoch: Bool
            /// The later epochs (from 0) in which the learning rate warms up again.
            public var laterWarmUpEpochs: Set<Int> = []

            /// Creates epochs.
            public init(
                count: Int, steps: Int, learningRate: Float,
                scheduleShape: LearningRateSchedule.Shape = .cosine(final: 0.01), warmsUpFirstEpoch: Bool = true
            ) {
                self.count = count
                self.steps = steps
                self.learningRate = learningRate
                self.scheduleShape = scheduleShape
                self.warmsUpFirstEpoch = warmsUpFirstEpoch
            }
        }

        /// A phase with its own learning-rate schedule.
        public struct Phase: Sendable {
            /// The number of steps; a phase ends earlier if the objective has no more batches.
            public var steps: Int
            /// The peak learning rate.
            public var learningRate: Float
            /// The schedule over the phase.
            public var schedule: LearningRateSchedule

            /// Creates a phase.
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

        /// Whether each round starts with a new optimizer and EMA.
        var restarts: Bool { if case .phases = self { true } else { false } }

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

        /// Returns the number of optimizer steps before a round.
        func stepsBefore(round: Int) -> Int {
            switch self {
            case .epochs(let epochs): round * epochs.steps
            case .phases: 0
            }
        }

        /// Returns the factor of the learning rate at a step of a round.
        func factor(round: Int, step: Int, plannedRounds: Int) -> Float {
            switch self {
            case .epochs(let epochs):
                let warmUpSteps = epochs.warmsUpFirstEpoch && plannedRounds > 1 ? epochs.steps : 0
                let factor = LearningRateSchedule(epochs.scheduleShape, warmUpSteps: warmUpSteps)
                    .factor(at: round * epochs.steps + step, of: plannedRounds * epochs.steps)
                return epochs.laterWarmUpEpochs.contains(round)
                    ? factor * Float(step + 1) / Float(epochs.steps) : factor
            case .phases(let phases):
                return phases[round].schedule.factor(at: step, of: phases[round].steps)
            }
        }
    }
}
