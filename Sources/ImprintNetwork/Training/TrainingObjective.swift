/// What a `TrainingLoop` minimizes: it brings the next batch, runs the forward pass and computes the loss and its gradient.
///
/// A new training strategy is one type that conforms to this protocol. Only `plan` and `forward` are required:
///
/// ```swift
/// final class LeastSquares: TrainingObjective {
///     let plan: ExecutionPlan
///     func forward(round: Int, step: Int) -> StepLoss? {
///         let error = …                       // fill plan.input, then
///         plan.forward(count: 1)
///         plan.outputGradient[0] = 2 * error  // the gradient of the loss with respect to the output
///         return StepLoss(loss: error * error, count: 1)
///     }
/// }
/// ```
public protocol TrainingObjective: AnyObject {
    /// The plan, compiled for training, whose parameters are trained. It may change from round to round.
    var plan: ExecutionPlan { get }

    /// Prepares a round (an epoch or a phase), before its first step or, after a resume, before step `step`.
    /// - Parameter evaluated: The parameters that validation uses: the exponential moving average if one is kept.
    func beginRound(_ round: Int, at step: Int, evaluated: Parameters) throws

    /// Runs the forward pass over the next batch and writes `plan.outputGradient`; the loop runs the backward pass.
    /// - Returns: The loss; nil if the round has no more batches.
    func forward(round: Int, step: Int) throws -> StepLoss?

    /// Further plans whose backward passes belong to this step, such as one for replayed features.
    var auxiliaryPasses: [AuxiliaryPass] { get }

    /// Adds terms to `plan.parameterGradients` after the backward passes, such as a penalty.
    func addGradients()

    /// Releases what a round holds, after its last step or if it ends early.
    func endRound()

    /// The loss and accuracy of parameters on the validation set; nil without a validation set.
    ///
    /// The loop always passes the same object, with the parameters of the last round or of the best one.
    func validate(_ parameters: Parameters) throws -> ValidationLoss?

    /// A number that changes if validation samples are no longer available; losses with different numbers do not compare.
    var validationVersion: Int { get }

    /// Encodes what the objective needs to resume besides the parameters; nil if nothing.
    func encodeState() throws -> String?

    /// Restores what `encodeState` encoded.
    func restoreState(_ text: String) throws
}

extension TrainingObjective {
    public func beginRound(_ round: Int, at step: Int, evaluated: Parameters) throws {}
    public var auxiliaryPasses: [AuxiliaryPass] { [] }
    public func addGradients() {}
    public func endRound() {}
    public func validate(_ parameters: Parameters) throws -> ValidationLoss? { nil }
    public var validationVersion: Int { 0 }
    public func encodeState() throws -> String? { nil }
    public func restoreState(_ text: String) throws {}
}

/// The loss of one step, measured before its update.
public struct StepLoss: Sendable {
    /// The mean loss over the batch.
    public var loss: Float
    /// The number of correct samples in the batch.
    public var correct: Int
    /// The number of samples in the batch: those of the forward pass.
    public var count: Int
    /// The index of the batch in its round, or nil for the next one.
    ///
    /// Batches are missing if their photos cannot be read.
    public var step: Int?

    /// Makes the loss of a step.
    public init(loss: Float, correct: Int = 0, count: Int, step: Int? = nil) {
        self.loss = loss
        self.correct = correct
        self.count = count
        self.step = step
    }
}

/// The loss and accuracy on the validation set.
public struct ValidationLoss: Sendable {
    /// The mean loss.
    public var loss: Float
    /// The accuracy, 0…1.
    public var accuracy: Float

    /// Makes a validation result.
    public init(loss: Float, accuracy: Float) {
        self.loss = loss
        self.accuracy = accuracy
    }
}

/// A plan besides the objective's own whose backward pass belongs to a step.
public struct AuxiliaryPass {
    /// The plan, after its forward pass and with its output gradient written.
    public let plan: ExecutionPlan
    /// The number of samples.
    public let count: Int

    /// Makes a pass.
    public init(plan: ExecutionPlan, count: Int) {
        self.plan = plan
        self.count = count
    }
}
