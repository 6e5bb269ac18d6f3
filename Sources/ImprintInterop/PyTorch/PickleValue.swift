internal import ImprintModel

/// A value of a pickle, which refers to others by their index in a `PickleHeap`.
///
/// Values hold no references, so a value may contain itself, and a deeply nested value is not freed recursively.
enum PickleValue {
    case none
    case bool(Bool)
    case integer(Int32)
    /// An integer of up to 64 bits.
    case long(UInt32)
    case text(UInt32)
    case tuple(UInt32)
    case list(UInt32)
    case dictionary(UInt32)
    case global(PickleGlobal)
    case storage(UInt32)
    case tensor(UInt32)
    /// A value that no tensor depends on, such as a floating-point number or the settings of a training run.
    case other
}

/// A function or class that a pickle may name.
///
/// The reader never calls them, because it knows the result of each.
enum PickleGlobal {
    case orderedDictionary
    /// `torch.Size`, a tuple of the lengths of dimensions.
    case size
    /// `_rebuild_tensor(storage, offset, size, stride)`, with further arguments in version 2.
    case tensor
    /// `_rebuild_parameter(tensor, requires_grad, hooks)`.
    case parameter
    case storage(Safetensors.ElementType)
    /// A class whose objects no tensor depends on.
    case other

    /// Finds a function or class by its module and name, separated by a dot; nil if it is not on the list.
    init?(_ name: String) {
        switch name {
        case "collections.OrderedDict": self = .orderedDictionary
        case "torch.Size": self = .size
        case "torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2": self = .tensor
        case "torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state": self = .parameter
        case "torch.FloatStorage": self = .storage(.float32)
        case "torch.HalfStorage": self = .storage(.float16)
        case "torch.BFloat16Storage": self = .storage(.bfloat16)
        case "torch.DoubleStorage": self = .storage(.float64)
        case "torch.LongStorage": self = .storage(.int64)
        case "torch.IntStorage": self = .storage(.int32)
        case "torch.ShortStorage": self = .storage(.int16)
        case "torch.CharStorage": self = .storage(.int8)
        case "torch.ByteStorage": self = .storage(.uint8)
        case "torch.BoolStorage": self = .storage(.bool)
        // Parts of training checkpoints: arguments, metrics and the state of schedules.
        case "argparse.Namespace", "torch.device", "collections.Counter", "collections.defaultdict",
            "numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar", "numpy.dtype", "_codecs.encode":
            self = .other
        default: return nil
        }
    }
}

/// The opcodes of pickle protocols 2 to 5 that checkpoints of tensors use.
///
/// Source: Python's `pickletools`.
enum PickleOpcode: UInt8 {
    case mark = 0x28
    case emptyTuple = 0x29
    case stop = 0x2E
    case pop = 0x30
    case popMark = 0x31
    case binaryBytes = 0x42
    case shortBinaryBytes = 0x43
    case binaryFloat = 0x47
    case binaryInteger = 0x4A
    case binaryInteger1 = 0x4B
    case binaryInteger2 = 0x4D
    case none = 0x4E
    case persistentID = 0x51
    case reduce = 0x52
    case binaryString = 0x54
    case shortBinaryString = 0x55
    case binaryUnicode = 0x58
    case emptyList = 0x5D
    case append = 0x61
    case build = 0x62
    case global = 0x63
    case appends = 0x65
    case binaryGet = 0x68
    case longBinaryGet = 0x6A
    case binaryPut = 0x71
    case longBinaryPut = 0x72
    case setItem = 0x73
    case tuple = 0x74
    case setItems = 0x75
    case emptyDictionary = 0x7D
    case protocolVersion = 0x80
    case newObject = 0x81
    case tuple1 = 0x85
    case tuple2 = 0x86
    case tuple3 = 0x87
    case newTrue = 0x88
    case newFalse = 0x89
    case long1 = 0x8A
    case long4 = 0x8B
    case shortBinaryUnicode = 0x8C
    case binaryUnicode8 = 0x8D
    case binaryBytes8 = 0x8E
    case emptySet = 0x8F
    case addItems = 0x90
    case frozenSet = 0x91
    case stackGlobal = 0x93
    case memoize = 0x94
    case frame = 0x95
    case byteArray8 = 0x96

    /// The names of opcodes that are valid, but that the reader rejects.
    static let rejected: [UInt8: String] = [
        0x32: "DUP", 0x46: "FLOAT", 0x49: "INT", 0x4C: "LONG", 0x50: "PERSID", 0x53: "STRING", 0x56: "UNICODE",
        0x64: "DICT", 0x67: "GET", 0x69: "INST", 0x6C: "LIST", 0x6F: "OBJ", 0x70: "PUT", 0x82: "EXT1", 0x83: "EXT2",
        0x84: "EXT4", 0x92: "NEWOBJ_EX", 0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
    ]
}
