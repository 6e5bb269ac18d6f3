/// The shape of one image-like activation, without the batch: height, width and channels (H, W, C).
///
/// A vector of *n* numbers has the shape 1 x 1 x *n*. In memory channels vary fastest (NHWC).
public struct TensorShape: Hashable, Codable, Sendable, CustomStringConvertible {
    /// The number of rows.
    public var height: Int
    /// The number of columns.
    public var width: Int
    /// The number of values at each place.
    public var channels: Int

    /// Makes a shape of `height` rows, `width` columns and `channels` values at each place.
    public init(height: Int, width: Int, channels: Int) {
        self.height = height
        self.width = width
        self.channels = channels
    }

    /// Makes the shape of a vector, 1 x 1 x `channels`.
    public init(channels: Int) { self.init(height: 1, width: 1, channels: channels) }

    /// The number of places: height times width.
    public var pixels: Int { height * width }
    /// The number of values: height times width times channels.
    public var count: Int { height * width * channels }
    /// "height x width x channels".
    public var description: String { "\(height)x\(width)x\(channels)" }
}
