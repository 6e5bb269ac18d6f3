internal import ImprintCore

/// Preprocessed images of one size in one block of memory, which the system commits only as it is filled.
///
/// Different threads may write at different indices at the same time.
final class ImageStore: @unchecked Sendable {
    /// The maximum number of images.
    let capacity: Int
    private let width: Int
    private let height: Int
    private let channels: Int
    private let samples: UnsafeMutableBufferPointer<UInt8>
    private var bytesPerImage: Int { width * height * channels }

    /// Creates a store for `count` outputs of `preprocessing`, or for as many as `memoryLimit` bytes hold.
    init(count: Int, of preprocessing: Preprocessing, memoryLimit: Int) {
        (width, height, channels) = (preprocessing.width, preprocessing.height, preprocessing.channels)
        capacity = min(count, max(memoryLimit, 0) / (width * height * channels))
        samples = .allocate(capacity: capacity * width * height * channels)
    }

    deinit { samples.deallocate() }

    private func bytes(at index: Int) -> UnsafeMutableBufferPointer<UInt8> {
        precondition(index < capacity, "index \(index) is out of range for a capacity of \(capacity)")
        return UnsafeMutableBufferPointer(rebasing: samples[(index * bytesPerImage)..<((index + 1) * bytesPerImage)])
    }

    /// The image at an index; write it before you read it.
    subscript(index: Int) -> RasterImage {
        get { RasterImage(width: width, height: height, channels: channels, samples: Array(bytes(at: index))) }
        set { _ = bytes(at: index).update(fromContentsOf: newValue.samples) }
    }

    /// Collects images that the processes have written.
    /// - Parameter share: Returns the indices of the images of a process; those beyond the capacity are ignored.
    func allGather(_ processes: ProcessGroup, share: (_ rank: Int) -> Range<Int>) {
        guard let base = samples.baseAddress else { return }
        processes.allGather(base, parts: processes.count) {
            let stored = share($0).clamped(to: 0..<capacity)
            return (stored.lowerBound * bytesPerImage)..<(stored.upperBound * bytesPerImage)
        }
    }

    /// Moves an image to an earlier index.
    func move(from source: Int, to target: Int) {
        if source != target { _ = bytes(at: target).update(fromContentsOf: bytes(at: source)) }
    }
}
