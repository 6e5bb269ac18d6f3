/// An objective that a `TrainingLoop` minimizes.
///
/// An objective provides batches, runs the forward pass, and computes the loss and its gradient. To add a training strategy, write a type
/// that conforms to this protocol. Only `plan` and `trainingStep` are required:
///
/// ```swift
/// final class LeastSquares: TrainingObjective {
///     let plan: ExecutionPlan
///     func trainingStep(round: Int, step: Int) -> StepLoss? {
///         let error = …                       // fill plan.input, then
///         plan.forward(count: 1)
///         plan.outputGradient[0] = 2 * error  // the gradient of the loss with respect to the output
///         return StepLoss(loss: error * error, count: 1)
///     }
/// }
/// ```
public protocol TrainingObjective: AnyObject {
    /// The plan, compiled for training, whose parameters the loop trains; `beginRound(_:at:evaluationParameters:)` may replace it.
    var plan: ExecutionPlan { get }

    /// Prepares a round (an epoch or a phase), before its first step or, after a resume, before step `step`.
    /// - Parameters:
    ///   - round: The index of the round, from 0.
    ///   - step: The index of the next step in the round: 0, or the first step after a resume.
    ///   - evaluationParameters: The parameters for validation: the EMA, or the trained parameters without an EMA.
    func beginRound(_ round: Int, at step: Int, evaluationParameters: Parameters) throws

    /// Loads the next batch, runs its forward pass, computes the loss and writes `plan.outputGradient`.
    ///
    /// The loop then runs the backward pass and the optimizer. A round ends after its planned number of steps (`TrainingLoop.Rounds`), or when
    /// this method returns nil.
    /// - Returns: The loss; nil if the round has no more batches.
    func trainingStep(round: Int, step: Int) throws -> StepLoss?

    /// Additional plans whose backward passes belong to this step, such as one for replayed features.
    ///
    /// The loop runs their backward passes after that of `plan`. Each plan has its own gradients, and the optimizer reads only those of `plan`.
    /// `addGradients()` must therefore add the gradients of these plans.
    var auxiliaryPasses: [AuxiliaryPass] { get }

    /// Adds terms to `plan.parameterGradients` after the backward passes: the gradients of auxiliary plans, or a regularization term.
    ///
    /// For an auxiliary plan that shares the `Parameters` of `plan`:
    ///
    /// ```swift
    /// func addGradients() {
    ///     for (range, _) in auxiliary.trainableRanges {
    ///         for index in range { plan.parameterGradients[index] += auxiliary.parameterGradients[index] }
    ///     }
    /// }
    /// ```
    ///
    /// If the auxiliary plan has other `Parameters`, as for a part of the network, copy the values of `plan.parameters` to them before its forward
    /// pass (`Parameters.setValues(_:of:)`), and find each tensor by its name in both layouts.
    func addGradients()

    /// Releases the resources of a round, after its last step or if it ends early.
    func endRound()

    /// Returns the loss and accuracy of parameters on the validation set; nil without a validation set.
    ///
    /// The loop always passes the same object, which contains the parameters of the last or the best round.
    func validate(_ parameters: Parameters) throws -> ValidationLoss?

    /// A version that changes if validation samples become unreadable; losses of different versions are not comparable.
    var validationVersion: Int { get }

    /// Encodes the state that the objective needs to resume, besides the parameters; nil if it has no state.
    func encodeState() throws -> String?

    /// Restores the state that `encodeState` encoded.
    /// - Throws: `TrainingStateError` if the state is damaged or does not fit the objective.
    func restoreState(_ text: String) throws
}

extension TrainingObjective {
    public func beginRound(_ round: Int, at step: Int, evaluationParameters: Parameters) throws {}
    public var auxiliaryPasses: [AuxiliaryPass] { [] }
    public func addGradients() {}
    public func endRound() {}
    public func validate(_ parameters: Parameters) throws -> ValidationLoss? { nil }
    public var validationVersion: Int { 0 }
    public func encodeState() throws -> String? { nil }
    public func restoreState(_ text: String) throws {}
}

/// The loss of one step, before its update.
public struct StepLoss: Sendable {
    /// The mean loss over the batch.
    public var loss: Float
    /// The number of correct samples in the batch, or of correct decisions.
    public var correct: Int
    /// The number of samples in the batch of the forward pass.
    public var count: Int
    /// The index of the batch in its round; nil for the next index.
    ///
    /// An objective skips batches whose photos are unreadable.
    public var step: Int?
    /// The number of decisions, including the `correct` ones, or nil for one per sample.
    ///
    /// A multi-label classifier decides about every label of a sample.
    public var decisions: Int?

    /// Creates the loss of a step.
    public init(loss: Float, correct: Int = 0, count: Int, step: Int? = nil, decisions: Int? = nil) {
        self.loss = loss
        self.correct = correct
        self.count = count
        self.step = step
        self.decisions = decisions
    }
}

/// The loss and accuracy on the validation set.
public struct ValidationLoss: Sendable {
    /// The mean loss.
    public var loss: Float
    /// The accuracy, 0…1.
    public var accuracy: Float
    /// The mean average precision of a detector (mAP@.5:.95), 0…1; nil without boxes in the validation set.
    ///
    /// If rounds have it, the loop keeps the round with the highest one instead of the lowest loss.
    public var averagePrecision: Float?

    /// Creates a validation result.
    public init(loss: Float, accuracy: Float, averagePrecision: Float? = nil) {
        self.loss = loss
        self.accuracy = accuracy
        self.averagePrecision = averagePrecision
    }
}

/// The backward pass of an additional plan in a step.
public struct AuxiliaryPass {
    /// The plan, after its forward pass and with its output gradient written.
    public let plan: ExecutionPlan
    /// The number of samples.
    public let count: Int

    /// Creates a pass.
    public init(plan: ExecutionPlan, count: Int) {
        self.plan = plan
        self.count = count
    }
}
