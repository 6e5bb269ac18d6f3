/// The options of a model server.
package struct ServeOptions: Sendable {
    /// The IPv4 or IPv6 address of this machine to listen on.
    package var host = "127.0.0.1"
    /// The port; 0 for a free one.
    package var port = 8000
    /// The name of the model in paths.
    package var modelName: String
    /// The version of Imprint.
    package var version: String
    /// The token that requests need; nil for none, which is possible only on a loopback address.
    package var token: String?
    /// The maximum number of images that the network computes at once, at least 1.
    package var maximumBatchSize = 8
    /// The time that the first image of a batch waits for others, at least 0.
    package var maximumDelay = Duration.zero
    /// The maximum number of images that wait for a batch, at least 1.
    package var queueCapacity = 256
    /// The maximum number of bytes in the body of a request, at least 1.
    package var maximumRequestByteCount = 32 << 20
    /// The maximum number of open connections, at least 1.
    package var maximumConnectionCount = 256
    /// The duration of a request body or a response after which a new connection may replace its connection, if all are in use.
    package var slowTransferDuration = Duration.seconds(5)

    /// Creates options.
    package init(modelName: String, version: String) { (self.modelName, self.version) = (modelName, version) }
}
