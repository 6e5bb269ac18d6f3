internal import Synchronization

/// The kinds of layers that a model file can contain.
public enum LayerRegistry {
    /// The layers of this module; add a new layer here.
    private static let builtIn: [any Layer.Type] = [
        AddLayer.self, Affine.self, AveragePool.self, BatchNormalization.self, ClipLayer.self, Concat.self,
        Convolution.self, Dense.self, Dropout.self, ELU.self, Erf.self, Flatten.self, GELU.self, GlobalAveragePool.self,
        GlobalMaxPool.self, HardSigmoid.self, HardSwish.self, LayerNormalization.self, LeakyReLU.self,
        LocalResponseNormalization.self, MaxPool.self, MaximumLayer.self, MeanLayer.self, MultiplyLayer.self,
        PReLU.self, PadLayer.self, ReLU.self, ReLU6.self, SelectChannels.self, Sigmoid.self, Softmax.self,
        Softplus.self, Swish.self, Tanh.self, TransposedConvolution.self, UpsampleNearest.self,
    ]
    private static let kinds = Mutex(Dictionary(uniqueKeysWithValues: builtIn.map { ($0.kind, $0) }))

    /// Registers a custom layer, so that model files that contain it can be loaded.
    ///
    /// Register your layers when the program starts. Registering the same type again has no effect.
    /// - Precondition: No other type has the same `kind`.
    public static func register(_ layer: any Layer.Type) {
        kinds.withLock { kinds in
            if let known = kinds[layer.kind] {
                precondition(known == layer, "the layer kind \"\(layer.kind)\" is already registered by \(known)")
            }
            kinds[layer.kind] = layer
        }
    }

    /// Returns the layer type with this `kind`; nil if it is not registered.
    static func type(of kind: String) -> (any Layer.Type)? { kinds.withLock { $0[kind] } }

    /// All layer types, sorted by `kind`.
    package static var all: [any Layer.Type] {
        kinds.withLock { Array($0.values) }.sorted { $0.kind < $1.kind }
    }
}
