internal import Synchronization

/// The kinds of layers that a stored network may name.
public enum LayerRegistry {
    /// The kinds of this module; a new kind adds its line here.
    private static let builtIn: [any Layer.Type] = [
        AddLayer.self, Affine.self, AveragePool.self, BatchNormalization.self, ClipLayer.self, Concat.self,
        Convolution.self, Dense.self, Dropout.self, ELU.self, Erf.self, Flatten.self, GELU.self, GlobalAveragePool.self,
        GlobalMaxPool.self, HardSigmoid.self, HardSwish.self, LayerNormalization.self, LeakyReLU.self,
        LocalResponseNormalization.self, MaxPool.self, MaximumLayer.self, MeanLayer.self, MultiplyLayer.self,
        PReLU.self, PadLayer.self, ReLU.self, ReLU6.self, SelectChannels.self, Sigmoid.self, Softmax.self,
        Softplus.self, Swish.self, Tanh.self, TransposedConvolution.self, UpsampleNearest.self,
    ]
    private static let kinds = Mutex(Dictionary(uniqueKeysWithValues: builtIn.map { ($0.kind, $0) }))

    /// Makes a kind of layer known, so that networks that contain it can be read from model files.
    ///
    /// Register your layers when the program starts. To register the same type again has no effect.
    /// - Precondition: No other type has the same `kind`.
    public static func register(_ layer: any Layer.Type) {
        kinds.withLock { kinds in
            if let known = kinds[layer.kind] {
                precondition(known == layer, "the layer kind \"\(layer.kind)\" is already registered by \(known)")
            }
            kinds[layer.kind] = layer
        }
    }

    /// The type of a kind of layer; nil if no such kind is registered.
    static func type(of kind: String) -> (any Layer.Type)? { kinds.withLock { $0[kind] } }

    /// All kinds, sorted by name.
    package static var all: [any Layer.Type] {
        kinds.withLock { Array($0.values) }.sorted { $0.kind < $1.kind }
    }
}
