/// Averages gradients over all processes that train the same parameters.
///
/// `TrainingLoop` calls it in every step, after the backward pass and before the optimizer.
package protocol GradientReducer {
    /// Replaces the gradients of this process by the mean over all processes.
    /// - Parameter gradients: The gradients of all trainable parameters.
    func reduce(_ gradients: UnsafeMutableBufferPointer<Float>) throws
}

/// A reducer for training in a single process, which leaves gradients unchanged.
package struct LocalReducer: GradientReducer {
    package init() {}
    package func reduce(_ gradients: UnsafeMutableBufferPointer<Float>) {}
}
