internal import ImprintModel

extension PersonalizationSession {
    /// The training data: an initial personalization and examples.
    struct TrainingData: Sendable {
        /// The personalization that the session started with.
        var initial: Personalization?
        var examples: [Example] = []

        var byteCount: Int { examples.reduce(0) { $0 + $1.byteCount } }

        /// Adds examples at the end.
        /// - Returns: The step that reverts the change.
        mutating func add(_ more: [Example]) -> UndoStep {
            examples += more
            return UndoStep(initial: initial, addedCount: more.count, removed: [])
        }

        /// Removes the examples and the initial change of a label.
        /// - Returns: The step that reverts the change.
        mutating func forget(_ label: String) -> UndoStep {
            let removed = examples.enumerated().filter { $0.element.supervision.label == label }
            let step = UndoStep(
                initial: initial, addedCount: 0, removed: removed.map { (index: $0.offset, example: $0.element) })
            examples.removeAll { $0.supervision.label == label }
            initial = initial?.without(label)
            return step
        }

        /// Reverts the last change.
        mutating func revert(_ step: UndoStep) {
            examples.removeLast(step.addedCount)
            for (index, example) in step.removed { examples.insert(example, at: index) }
            initial = step.initial
        }
    }

    /// A step that reverts a change of the training data.
    struct UndoStep: Sendable {
        /// The initial personalization before the change.
        let initial: Personalization?
        /// The number of examples that the change added at the end.
        let addedCount: Int
        /// The examples that the change removed, with their indices before the change, in ascending order.
        let removed: [(index: Int, example: Example)]

        /// The number of bytes of the features of removed examples.
        var byteCount: Int { removed.reduce(0) { $0 + $1.example.byteCount } }
    }

    /// The training data and the steps that revert its changes.
    ///
    /// A step stores only the examples that its change removed, so an example is stored once, in the data or in a step.
    struct TrainingHistory: Sendable {
        private(set) var data: TrainingData
        /// The steps, the latest at the end.
        private var steps: [UndoStep] = []

        init(_ data: TrainingData) { self.data = data }

        /// The number of bytes of the features in the data and in the steps.
        var byteCount: Int { data.byteCount + steps.reduce(0) { $0 + $1.byteCount } }

        /// The data before the last change; nil if there is no change to revert.
        var previousData: TrainingData? {
            guard let step = steps.last else { return nil }
            var data = data
            data.revert(step)
            return data
        }

        /// Records a change, and drops the oldest steps while the features have more than `limit` bytes.
        ///
        /// If neither the new nor the previous data exceed the limit, the step of this change remains.
        mutating func change(to data: TrainingData, revertedBy step: UndoStep, limit: Int) {
            self.data = data
            steps.append(step)
            var byteCount = byteCount
            let droppedCount = steps.prefix(while: { step in
                guard byteCount > limit else { return false }
                byteCount -= step.byteCount
                return true
            }).count
            steps.removeFirst(droppedCount)
        }

        /// Reverts the last change.
        mutating func undo() {
            guard let step = steps.popLast() else { return }
            data.revert(step)
        }
    }
}
