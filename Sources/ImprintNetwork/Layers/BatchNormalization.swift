/// Batch normalization of each channel.
///
/// y = scale · (x − mean) / √(variance + ε) + shift
///
/// Input and output: [batch, height, width, channels].
///
/// Parameters, all [channels]:
/// - `scale`, initialized to 1, and `shift`, initialized to 0; without weight decay.
/// - `runningMean`, initialized to 0, and `runningVariance`, initialized to 1; not trained by gradients.
///
/// In training, mean and (biased) variance are computed over batch, height and width, and the running statistics are updated:
/// running ← (1 − momentum) · running + momentum · batch, with the unbiased variance, as in PyTorch. In prediction, and if the
/// layer is frozen or `usesRunningStatistics` is true, the layer normalizes with the running statistics.
///
/// Backward with n = batch · height · width and x̂ = (x − mean) / √(variance + ε):
/// dshift = Σ dy, dscale = Σ dy · x̂, dx = scale / √(variance + ε) · (dy − dshift / n − x̂ · dscale / n); with running
/// statistics, dx = scale / √(variance + ε) · dy.
///
/// Source: Ioffe and Szegedy, "Batch normalization", 2015.
public struct BatchNormalization: Layer, LayerKernel {
    public static let kind = "batchNormalization"
    /// The weight of the batch in the running statistics, 0…1.
    public let momentum: Float
    /// The term added to the variance, ε > 0.
    public let epsilon: Float
    /// Whether training also normalizes with the running statistics, without updating them.
    public let usesRunningStatistics: Bool

    /// Creates the layer.
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

    package var readsMoments: Bool { fused.readsMoments }
    package var gradientMayReplaceInput: Bool { fused.gradientMayReplaceInput }
    public func memory(_ request: MemoryRequest) -> LayerMemory { fused.memory(request) }
    public func forward(_ context: LayerContext, batch: Int) { fused.forward(context, batch: batch) }
    public func backward(_ context: LayerContext, batch: Int) { fused.backward(context, batch: batch) }

    /// The fused implementation, without shortcut, activation and pooling.
    private var fused: NormalizedActivation { NormalizedActivation(self) }
}
