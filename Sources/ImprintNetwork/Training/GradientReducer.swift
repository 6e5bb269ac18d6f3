/// Averages gradients over all processes that train the same parameters.
///
/// `TrainingLoop` calls it in every step, after the backward passes and before `TrainingObjective.addGradients`: terms that do not depend
/// on the batch, such as a penalty, count once.
package protocol GradientReducer {
    /// Replaces the gradients of this process by the mean over all processes.
    /// - Parameter gradients: The gradients of all trainable parameters.
    func reduce(_ gradients: UnsafeMutableBufferPointer<Float>) throws
}

/// A reducer for training in a single process: the mean over one process is the gradient itself.
package struct LocalReducer: GradientReducer {
    package init() {}
    package func reduce(_ gradients: UnsafeMutableBufferPointer<Float>) {}
}
