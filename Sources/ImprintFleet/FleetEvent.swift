/// An event of a fleet client.
public enum FleetEvent: Sendable, Equatable {
    /// The device joined the fleet; the server knows it under this node ID.
    case joined(node: UInt64)
    /// The server cannot be reached; the client tries again after some seconds.
    case waiting(reason: String, seconds: Double)
    /// The client continues an answer that an earlier process with the same key did not finish.
    case resumed
    /// The device trained on its photos, and sends its client update.
    case trained(Training)
    /// The device evaluated the model of the server on its validation photos, and sends the result.
    ///
    /// The accuracy is the share of correct photos, 0 to 1, and the loss is the mean cross-entropy. The round is nil if the server does not number
    /// rounds.
    case evaluated(round: Int?, photoCount: Int, accuracy: Double, loss: Double)
    /// The device answered a query with the number of its photos.
    case answeredQuery
    /// The device did not do what a message asked for, and sends an error.
    case refused(reason: String)
    /// The client drops its answer to a message, for example because the run on the server has ended.
    case dropped(reason: String)

    /// The result of training in a round.
    public struct Training: Sendable, Equatable {
        /// The round; nil if the server does not number rounds.
        public let round: Int?
        /// The number of photos.
        public let photoCount: Int
        /// The Euclidean norm of the client update before clipping; 0 if training diverged, so that the device sends only noise.
        public let norm: Double
        /// Whether the client update was scaled down to `FleetConfiguration.clip`.
        public let isClipped: Bool
        /// The ε of everything that the key has sent, this round included; nil without noise.
        ///
        /// For any two sets of photos of the device, and any set of messages, let p be the probability that the messages with the first photos
        /// are in the set, and q the same probability with the second photos. Then p ≤ e^ε q + δ. The number of photos is public.
        public let epsilon: Double?
    }
}
