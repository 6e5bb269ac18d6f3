internal import ImprintCore

/// The batch of a pass, and the processes that divide it.
final class CurrentBatch {
    /// The processes; nil for a single process.
    let processes: ProcessGroup?
    /// The part of the batch that this process computes.
    private(set) var part = BatchPart(wholeBatch: 0)
    /// The results of `LayerContext.ofAllImages`.
    fileprivate(set) var gathered: [UnsafePointer<Float>?] = [nil, nil]

    init(_ processes: ProcessGroup?) { self.processes = processes }

    /// Begins a pass over a batch.
    func begin(count: Int) { part = processes?.part(of: count) ?? BatchPart(wholeBatch: count) }
}

extension LayerContext {
    /// The part of the batch that this process computes; an algorithm may depend on the size of the batch, but not on that of the part.
    var part: BatchPart { currentBatch.part }

    /// The processes, if they divide this batch.
    private var processes: ProcessGroup? { part.count > 1 ? currentBatch.processes : nil }

    /// Replaces values by their sums over all parts of the batch, and returns when all threads can read them.
    func allReduce(_ values: UnsafeMutablePointer<Float>, count: Int) {
        guard let processes else { return }
        worker.onFirstThread { processes.allReduce(values, count: count, parts: part.count) }
    }

    /// Replaces values by their sums over all parts of the batch, and returns when all threads can read them.
    func allReduce(_ values: UnsafeMutablePointer<Double>, count: Int) {
        guard let processes else { return }
        worker.onFirstThread { processes.allReduce(values, count: count, parts: part.count) }
    }

    /// Replaces the gradient of a parameter by its sum over all parts of the batch before the end of the backward pass.
    func allReduceInBackground(_ gradient: UnsafeMutablePointer<Float>, count: Int) {
        guard worker.index == 0 else { return }
        processes?.allReduceInBackground(gradient, count: count, parts: part.count)
    }

    /// Returns the values of all images of the batch, given those of the images of this process.
    /// - Parameters:
    ///   - count: The number of values of an image.
    ///   - slot: The memory of the result, 0 or 1.
    func ofAllImages(_ values: UnsafePointer<Float>, count: Int, slot: Int) -> UnsafePointer<Float> {
        guard let processes else { return values }
        worker.onFirstThread {
            currentBatch.gathered[slot] = processes.allGatherImages(values, count: count, of: part, slot: slot)
        }
        return currentBatch.gathered[slot] ?? values
    }

    /// Moves the values of the images of this process to the start, after all images were computed.
    func keepOwnImages(_ values: UnsafeMutablePointer<Float>, count: Int) {
        let own = part.images(of: part.index, times: count)
        guard own.lowerBound > 0 else { return }
        worker.onFirstThread { values.update(from: values + own.lowerBound, count: own.count) }
    }

    /// Collects the moments that the processes have recorded, each for its part of the batch.
    func allGather(_ moments: Moments) {
        guard let processes else { return }
        worker.onFirstThread { moments.allGather(processes, parts: part.count) }
    }
}
