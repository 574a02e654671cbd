"""Small networks of timm, torchvision, transformers and peft, with random weights and without dropout.

Those with a function `loss` are trained by the loss of their package; what `forward` gives is trained in stepop.
"""

from torch import nn
from torch.nn import functional as F

SIZE, TOKENS, WORDS, CLASSES = 32, 9, 40, 5


def make_timm(name, **options):
    from timm import create_model

    return create_model(name, num_classes=CLASSES, **options)


def resnet():
    return make_timm("test_resnet")


def efficientnet():
    return make_timm("test_efficientnet_gn")


def vit():
    return make_timm("test_vit", img_size=SIZE, depth=2)


class Fcn(nn.Module):
    """With its auxiliary head, which has a loss too."""

    def __init__(self):
        super().__init__()
        from torchvision.models import mobilenet_v2
        from torchvision.models._utils import IntermediateLayerGetter
        from torchvision.models.segmentation.fcn import FCN, FCNHead

        settings = [[1, 8, 1, 1], [4, 16, 2, 2], [4, 32, 1, 2]]
        features = mobilenet_v2(width_mult=0.5, inverted_residual_setting=settings).features
        backbone = IntermediateLayerGetter(features, {"2": "aux", "4": "out"})
        self.net = FCN(backbone, FCNHead(16, CLASSES), FCNHead(8, CLASSES))
        for each in self.modules():
            if isinstance(each, nn.Dropout):
                each.p = 0.0

    def forward(self, image):
        return self.net(image)


class Segformer(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import SegformerConfig, SegformerForSemanticSegmentation

        self.net = SegformerForSemanticSegmentation(SegformerConfig(
            num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2],
            num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16,
            classifier_dropout_prob=0.0, drop_path_rate=0.0, num_labels=CLASSES, semantic_loss_ignore_index=255))

    def forward(self, image):
        return F.interpolate(self.net(image).logits, size=image.shape[-2:], mode="bilinear", align_corners=False)

    def loss(self, image, mask):
        return self.net(image, labels=mask).loss


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import BertConfig, BertForSequenceClassification

        self.net = BertForSequenceClassification(BertConfig(
            vocab_size=WORDS, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=CLASSES))

    def forward(self, tokens, mask):
        return self.net(tokens, mask).logits

    def loss(self, tokens, mask, kind):
        return self.net(tokens, mask, labels=kind).loss


class Gpt2(nn.Module):
    """The words' weights are those of the last layer."""

    def __init__(self):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        self.net = GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=TOKENS, n_embd=16, n_layer=2, n_head=2,
                                              resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False))

    def forward(self, tokens):
        return self.net(tokens).logits.transpose(1, 2)  # [B, words, T]

    def loss(self, tokens, following):
        return self.net(tokens, labels=tokens).loss


def sequencer():
    """LSTMs along rows and along columns, in both directions."""
    from timm.models.sequencer import Sequencer2d

    return Sequencer2d(num_classes=CLASSES, layers=(1, 1), patch_sizes=(8, 1), embed_dims=(8, 16), hidden_sizes=(4, 4),
                       mlp_ratios=(2.0, 2.0))


class Clip(nn.Module):
    """Two inputs of different types, and a loss over pairs of the batch."""

    def __init__(self):
        super().__init__()
        from transformers import CLIPConfig, CLIPModel

        sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
        self.net = CLIPModel(CLIPConfig(
            text_config={**sizes, "vocab_size": WORDS, "max_position_embeddings": TOKENS, "eos_token_id": WORDS - 1},
            vision_config={**sizes, "image_size": SIZE, "patch_size": 8}, projection_dim=8))

    def forward(self, tokens, image):
        return self.net(tokens, image).logits_per_text

    def loss(self, tokens, image):
        return self.net(tokens, image, return_loss=True).loss


class Lora(nn.Module):
    """A Llama that is frozen but for low ranks beside two of its layers, and a new head."""

    def __init__(self):
        super().__init__()
        from peft import LoraConfig, get_peft_model
        from transformers import LlamaConfig, LlamaForSequenceClassification

        net = LlamaForSequenceClassification(LlamaConfig(
            vocab_size=WORDS, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=TOKENS, num_labels=CLASSES, pad_token_id=0, use_cache=False))
        self.net = get_peft_model(net, LoraConfig(task_type="SEQ_CLS", r=2, lora_alpha=4, lora_dropout=0.0,
                                                  target_modules=["q_proj", "v_proj"]))

    def forward(self, tokens):
        return self.net(input_ids=tokens).logits

    def loss(self, tokens, kind):
        return self.net(input_ids=tokens, labels=kind).loss
