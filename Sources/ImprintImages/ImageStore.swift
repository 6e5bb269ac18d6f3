/// Prepared images of one size in one block of memory, which takes up room only as it is filled.
///
/// Different places may be written by different threads at a time.
final class ImageStore: @unchecked Sendable {
    /// How many images it can hold.
    let capacity: Int
    private let width: Int
    private let height: Int
    private let channels: Int
    private let samples: UnsafeMutableBufferPointer<UInt8>
    private var bytesPerImage: Int { width * height * channels }

    /// Makes room for `count` images as `preprocessing` gives them, or for as many as `memoryLimit` bytes hold.
    init(count: Int, of preprocessing: Preprocessing, memoryLimit: Int) {
        (width, height, channels) = (preprocessing.width, preprocessing.height, preprocessing.channels)
        capacity = min(count, max(memoryLimit, 0) / (width * height * channels))
        samples = .allocate(capacity: capacity * width * height * channels)
    }

    deinit { samples.deallocate() }

    private func bytes(at place: Int) -> UnsafeMutableBufferPointer<UInt8> {
        precondition(place < capacity, "there are \(capacity) places, not \(place + 1)")
        return UnsafeMutableBufferPointer(rebasing: samples[(place * bytesPerImage)..<((place + 1) * bytesPerImage)])
    }

    /// The image at a place that was written before.
    subscript(place: Int) -> RasterImage {
        get { RasterImage(width: width, height: height, channels: channels, samples: Array(bytes(at: place))) }
        set { _ = bytes(at: place).update(fromContentsOf: newValue.samples) }
    }

    /// Moves an image to a place before its own.
    func move(from place: Int, to target: Int) {
        if place != target { _ = bytes(at: target).update(fromContentsOf: bytes(at: place)) }
    }
}
