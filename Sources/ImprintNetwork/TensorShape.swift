/// The shape of an activation without the batch axis: height, width and channels (H, W, C).
///
/// A vector of *n* elements has the shape 1 x 1 x *n*. In memory, the channels of a pixel are contiguous (NHWC).
public struct TensorShape: Hashable, Codable, Sendable, CustomStringConvertible {
    /// The number of rows.
    public var height: Int
    /// The number of columns.
    public var width: Int
    /// The number of values per pixel.
    public var channels: Int

    /// Creates a shape with `height` rows, `width` columns and `channels` values per pixel.
    public init(height: Int, width: Int, channels: Int) {
        self.height = height
        self.width = width
        self.channels = channels
    }

    /// Creates the shape of a vector, 1 x 1 x `channels`.
    public init(channels: Int) { self.init(height: 1, width: 1, channels: channels) }

    /// The number of pixels: height times width.
    public var pixels: Int { height * width }
    /// The number of values: height times width times channels.
    public var count: Int { height * width * channels }
    /// A description such as "4x5x6".
    public var description: String { "\(height)x\(width)x\(channels)" }
}
