/// Averages gradients over all processes that train the same parameters.
///
/// The loop calls it after the backward pass of every step and before the optimizer.
package protocol GradientReducer {
    /// Replaces the gradients of this process by the mean over all processes.
    /// - Parameter gradients: The gradients of all trainable parameters.
    func reduce(_ gradients: UnsafeMutableBufferPointer<Float>) throws
}

/// Training in this process only: gradients stay as they are.
package struct LocalReducer: GradientReducer {
    package init() {}
    package func reduce(_ gradients: UnsafeMutableBufferPointer<Float>) {}
}
