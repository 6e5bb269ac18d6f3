internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// The memory in which batches of training patches are composed, before they are normalized for a network.
final class PatchBatches {
    private let patches: DetectorPatches
    private let preprocessing: Preprocessing
    private let workers: Workers
    private var memory: [UInt8]

    init(_ patches: DetectorPatches, _ preprocessing: Preprocessing, workers: Workers) {
        (self.patches, self.preprocessing, self.workers) = (patches, preprocessing, workers)
        memory = Array(repeating: 0, count: patches.batchSize * DetectorHead.patchSide * DetectorHead.patchSide * 3)
    }

    /// Writes the patches of a batch into the input of a network.
    /// - Parameter input: The input, [N, 96, 96, 3]; if several processes train together, only the part of this process is written.
    /// - Returns: The targets of each patch; empty for a patch without a logo.
    /// - Throws: The errors of `DetectorPatches.fill(_:of:step:)`.
    func fill(
        _ input: UnsafeMutableBufferPointer<Float>, of phase: DetectorPhase, step: Int
    ) throws -> [[HeatMapLoss.Target]] {
        let own = workers.processes?.part(of: patches.batchSize).images ?? 0..<patches.batchSize
        return try memory.withUnsafeMutableBufferPointer { memory in
            let targets = try patches.fill(memory, of: phase, step: step)
            let count = memory.count / patches.batchSize
            workers.parallelForEach(own.count) { offset, _ in
                let values = ((own.lowerBound + offset) * count)..<((own.lowerBound + offset + 1) * count)
                preprocessing.normalize(
                    UnsafeBufferPointer(rebasing: memory[values]),
                    into: UnsafeMutableBufferPointer(rebasing: input[values]))
            }
            return targets
        }
    }
}
