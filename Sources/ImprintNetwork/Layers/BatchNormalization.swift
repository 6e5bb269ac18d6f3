/// Batch normalization, y = scale · (x − mean) / √(variance + ε) + shift, channel by channel.
///
/// In training mean and (biased) variance are those of the batch over N, H and W, and the running statistics follow:
/// running ← (1 − momentum) · running + momentum · batch, with the unbiased variance, as PyTorch does. In prediction,
/// and where the layer is frozen or `usesRunningStatistics`, the running statistics take their place.
/// scale starts at 1, shift and running mean at 0, running variance at 1 (Ioffe and Szegedy, "Batch normalization", 2015).
///
/// Backward with n = N·H·W, x̂ = (x − mean) / √(variance + ε):
/// dshift = Σ dy, dscale = Σ dy·x̂, dx = scale / √(variance + ε) · (dy − dshift / n − x̂ · dscale / n); with running
/// statistics dx = scale / √(variance + ε) · dy.
public struct BatchNormalization: Layer, LayerKernel {
    public static let kind = "batchNormalization"
    /// The share of the new batch in the running statistics, 0…1.
    public let momentum: Float
    /// What is added to the variance, ε > 0.
    public let epsilon: Float
    /// Whether training too normalizes with the running statistics and leaves them as they are.
    public let usesRunningStatistics: Bool

    /// Makes the layer.
    public init(momentum: Float = 0.1, epsilon: Float = 1e-5, usesRunningStatistics: Bool = false) {
        self.momentum = momentum
        self.epsilon = epsilon
        self.usesRunningStatistics = usesRunningStatistics
    }

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        try check("BatchNormalization", "momentum", momentum, (0...1).contains(momentum), "between 0 and 1")
        try check("BatchNormalization", "epsilon", epsilon, epsilon > 0 && epsilon.isFinite, "a positive number")
        return try onlyInput("BatchNormalization", inputs)
    }

    public func parameters(for inputs: [TensorShape]) -> [ParameterDescription] {
        func vector(_ name: String, _ role: ParameterDescription.Role, _ value: Float) -> ParameterDescription {
            ParameterDescription(
                name: name, shape: [inputs[0].channels], role: role, initializer: .constant(value))
        }
        return [
            vector("scale", .bias, 1), vector("shift", .bias, 0),
            vector("runningMean", .statistic, 0), vector("runningVariance", .statistic, 1),
        ]
    }

    package var readsMoments: Bool { whole.readsMoments }
    package var gradientMayReplaceInput: Bool { whole.gradientMayReplaceInput }
    public func memory(_ request: MemoryRequest) -> LayerMemory { whole.memory(request) }
    public func forward(_ context: LayerContext, batch: Int) { whole.forward(context, batch: batch) }
    public func backward(_ context: LayerContext, batch: Int) { whole.backward(context, batch: batch) }

    /// The arithmetic, which it shares with the layers that may follow it.
    private var whole: NormalizedActivation { NormalizedActivation(self) }
}
